//! Image files, brought to what a model takes.

mod jpeg;

use std::io::Cursor;
use std::path::Path;

use cupola::backend::reserve;
use cupola::data::ImageDataset;
use cupola::file;
use cupola::train::Description;
use image::imageops::FilterType;
use image::{DynamicImage, ImageDecoder, ImageError, ImageFormat, ImageReader};

use crate::failure::{Failure, Outcome};

/// The longest file that is read, in bytes.
const LARGEST: u64 = 1 << 30;

/// The most pixels that are scaled: half a million bytes may unpack to more.
const MOST_PIXELS: u64 = 1 << 27;

/// The most bytes of a pixel: four channels in `f32`, in which pictures are scaled.
const WIDEST: u64 = 16;

/// The image at `path`, grey or in colour as the model takes it; of another size an error, unless
/// it may be scaled.
pub fn read(path: &Path, model: &Description, resize: bool) -> Outcome<Vec<u8>> {
    pixels(path, [model.side, model.side, model.channels], resize)
}

/// The bytes of the image at `path` in this height, width and number of channels.
pub fn pixels(path: &Path, [high, wide, channels]: [usize; 3], resize: bool) -> Outcome<Vec<u8>> {
    let failed = |detail: String| Failure::new(format!("{}: {detail}", path.display()));
    let bytes = file::read(path, LARGEST);
    let bytes = bytes.map_err(|cause| failed(format!("cannot be read: {cause}")))?;
    // What the file holds counts, not what it is called.
    let format = image::guess_format(&bytes).ok();
    let Some(format @ (ImageFormat::Png | ImageFormat::Jpeg)) = format else {
        return Err(failed("is neither PNG nor JPEG".to_owned()));
    };
    let cut = || failed("is damaged: it ends before the image does".to_owned());
    let layout = match format {
        ImageFormat::Jpeg => Some(jpeg::Layout::of(&bytes).ok_or_else(cut)?),
        _ if is_whole_png(&bytes) => None,
        _ => return Err(cut()),
    };
    let undecoded = |cause| {
        failed(match cause {
            ImageError::Limits(cause) => format!("is too large: {cause}"),
            cause => format!("is damaged: {cause}"),
        })
    };
    let size = |side: usize| u32::try_from(side).map_err(|cause| failed(cause.to_string()));
    let (wide, high) = (size(wide)?, size(high)?);
    // The size first: an image of another one need not be unpacked.
    let decoder = ImageReader::with_format(Cursor::new(&bytes), format).into_decoder();
    let decoder = decoder.map_err(undecoded)?;
    let ((width, height), unpacked) = (decoder.dimensions(), decoder.total_bytes());
    let held = bytes.len();
    if format == ImageFormat::Jpeg && least_jpeg(width, height) > held as u64 {
        return Err(failed(format!("is damaged: {held} bytes hold no {width}×{height} pixels")));
    }
    let fits = (width, height) == (wide, high);
    if !fits && !resize {
        return Err(failed(format!(
            "is {width}×{height}, the model takes {wide}×{high}; --resize scales it"
        )));
    }
    let area = |wide: u32, high: u32| u64::from(wide) * u64::from(high);
    if !fits && area(width, height) > MOST_PIXELS {
        return Err(failed(format!(
            "is too large: {width}×{height}, at most {MOST_PIXELS} pixels are scaled"
        )));
    }
    // What unpacks and scales ends the process where memory is short. So it is looked for before: for the picture,
    // for the coefficients of a JPEG, for its samples twice and its bytes where it is checked, for its columns scaled,
    // and for the result in two forms.
    let scaled = if fits { 0 } else { area(width, high) };
    let pixels = scaled.saturating_add(area(wide, high)).saturating_mul(WIDEST);
    let room = unpacked.saturating_mul(6).saturating_add(pixels).saturating_add(2 * held as u64);
    reserve::<u8>(room as usize, "a picture").map_err(|cause| failed(cause.to_string()))?;
    if let Some(layout) = layout {
        let is_whole = layout.is_whole(&bytes);
        if !is_whole.map_err(|cause| failed(format!("is damaged: {cause}")))? {
            return Err(cut());
        }
    }
    let picture = ImageReader::with_format(Cursor::new(&bytes), format).decode();
    let mut picture = picture.map_err(undecoded)?;
    if !fits {
        picture = picture.resize_exact(wide, high, FilterType::Triangle);
    }
    let picture = on_black(picture);
    match channels {
        1 => Ok(picture.into_luma8().into_raw()),
        3 => Ok(picture.into_rgb8().into_raw()),
        channels => Err(failed(format!("the model takes {channels} channels, not 1 or 3"))),
    }
}

/// The least bytes for the data of so many pixels: a bit for each block of 8×8, or for 16 blocks where the rest is
/// sampled as coarsely as the format allows (ITU-T T.81, A.1 and F.1.2).
fn least_jpeg(width: u32, height: u32) -> u64 {
    u64::from(width) * u64::from(height) / (64 * 16) / 8
}

/// Whether its last chunk, which is always the same, is there: the decoder does not look.
fn is_whole_png(bytes: &[u8]) -> bool {
    const END: &[u8] = b"IEND\xae\x42\x60\x82";
    bytes.windows(END.len()).any(|part| part == END)
}

/// What is transparent shows black, the ground of the sets of digits.
fn on_black(picture: DynamicImage) -> DynamicImage {
    if !picture.color().has_alpha() {
        return picture;
    }
    let mut pixels = picture.into_rgba8();
    for pixel in pixels.pixels_mut() {
        let [red, green, blue, alpha] = pixel.0;
        let over = |value: u8| (u16::from(value) * u16::from(alpha) / 255) as u8;
        pixel.0 = [over(red), over(green), over(blue), 255];
    }
    DynamicImage::ImageRgba8(pixels)
}

/// The images at `paths` as a set at the model's scale, with no labels worth the name.
pub fn set(paths: &[impl AsRef<Path>], model: &Description, resize: bool) -> Outcome<ImageDataset> {
    let shape = [model.side, model.side, model.channels];
    let size = shape.iter().fold(paths.len(), |all, &size| all.saturating_mul(size));
    let mut pixels = reserve(size, "pictures")?;
    for path in paths {
        pixels.extend(read(path.as_ref(), model, resize)?);
    }
    let labels = vec![0; paths.len()];
    let set = ImageDataset::new("images", pixels, shape, labels, model.classes.clone())?;
    Ok(set.normalized(model.normalization()?)?)
}
