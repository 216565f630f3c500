//! Whether a JPEG has all of its data. The decoder fills with grey what is missing, and says nothing.

use zune_jpeg::JpegDecoder;
use zune_jpeg::zune_core::bytestream::ZCursor;
use zune_jpeg::zune_core::options::DecoderOptions;

/// The markers of ITU-T T.81, table B.1, that are looked at.
mod marker {
    pub const SOF0: u8 = 0xc0;
    pub const SOF1: u8 = 0xc1;
    pub const SOF2: u8 = 0xc2;
    pub const RST0: u8 = 0xd0;
    pub const SOI: u8 = 0xd8;
    pub const EOI: u8 = 0xd9;
    pub const SOS: u8 = 0xda;
    pub const DRI: u8 = 0xdd;
    pub const TEM: u8 = 0x01;
}

/// What a picture's segments say of its data.
#[derive(Default)]
pub struct Layout {
    /// The components of the frame, and of each of their 64 coefficients how many low bits are still to come; `None` where
    /// nothing came.
    components: Vec<(u8, [Option<u8>; 64])>,
    is_progressive: bool,
    /// The number of the marker that is next, where data is cut into parts by such.
    restart: Option<u8>,
    /// Where the data ends, before the end's marker.
    end: usize,
}

impl Layout {
    /// Of the first picture in these bytes; `None` where its end's marker, or a scan before it, is missing.
    pub fn of(bytes: &[u8]) -> Option<Layout> {
        let mut layout = Layout::default();
        let mut at = 0;
        loop {
            // Data, and what stands between segments and means nothing, is passed over.
            at += bytes.get(at..)?.iter().position(|&byte| byte == 0xff)?;
            let fill = bytes[at..].iter().position(|&byte| byte != 0xff)?;
            let (start, marker) = (at, bytes[at + fill]);
            at += fill + 1;
            match marker {
                marker::EOI => {
                    layout.end = start;
                    return layout.has_all_scans().then_some(layout);
                }
                0 | marker::TEM | marker::SOI => continue,
                marker::RST0..marker::SOI => {
                    layout.restart = Some((marker - marker::RST0 + 1) % 8);
                    continue;
                }
                _ => {}
            }
            let length = usize::from(u16::from_be_bytes([*bytes.get(at)?, *bytes.get(at + 1)?]));
            let segment = bytes.get(at + 2..at + length.max(2))?;
            match marker {
                marker::SOF0 | marker::SOF1 | marker::SOF2 => layout.frame(marker, segment)?,
                marker::DRI => layout.restart = segment.iter().any(|&byte| byte != 0).then_some(0),
                marker::SOS => layout.scan(segment)?,
                _ => {}
            }
            at += length.max(2);
        }
    }

    /// T.81, B.2.2.
    fn frame(&mut self, marker: u8, segment: &[u8]) -> Option<()> {
        let parts = segment.get(6..)?.chunks_exact(3);
        self.components = parts.map(|part| (part[0], [None; 64])).collect();
        self.is_progressive = marker == marker::SOF2;
        Some(())
    }

    /// T.81, B.2.3.
    fn scan(&mut self, segment: &[u8]) -> Option<()> {
        self.restart = self.restart.map(|_| 0);
        let count = usize::from(*segment.first()?);
        let (names, rest) = segment.get(1..)?.split_at_checked(2 * count)?;
        let (first, last, bits) = match self.is_progressive {
            true => (usize::from(*rest.first()?), usize::from(*rest.get(1)?), *rest.get(2)? & 15),
            false => (0, 63, 0),
        };
        for name in names.iter().step_by(2) {
            let known = self.components.iter_mut().filter(|(known, _)| known == name);
            for (_, coefficients) in known {
                coefficients.get_mut(first..=last)?.fill(Some(bits));
            }
        }
        Some(())
    }

    /// Whether each component came, and the last bit of each coefficient that came at all.
    fn has_all_scans(&self) -> bool {
        let is_there = |coefficients: &[Option<u8>; 64]| {
            coefficients[0].is_some() && coefficients.iter().flatten().all(|&bits| bits == 0)
        };
        self.components.iter().all(|(_, coefficients)| is_there(coefficients))
    }

    /// Whether the data of the picture in these bytes goes on up to its end. The decoder goes on with zeros where it does
    /// not; so it is asked again with ones there, and with one more part where data is cut into parts: a picture that is
    /// whole does not change.
    pub fn is_whole(&self, bytes: &[u8]) -> Result<bool, String> {
        let more = || (1..=250u8).map(|n| (n.wrapping_mul(151) | 0x80) & 0xfe);
        let part = self.restart.map(|number| vec![0xff, marker::RST0 + number]);
        let whole = samples(bytes)?;
        let mut befores = std::iter::once(Vec::new()).chain(part);
        Ok(befores.all(|before| {
            let data = bytes[..self.end].iter().copied().chain(before).chain(more());
            let longer: Vec<u8> = data.chain([0xff, marker::EOI]).collect();
            samples(&longer).is_ok_and(|longer| longer == whole)
        }))
    }
}

/// The samples of a picture, in its own colours.
fn samples(bytes: &[u8]) -> Result<Vec<u8>, String> {
    let options = DecoderOptions::default().set_strict_mode(false);
    let options = options.set_max_width(usize::MAX).set_max_height(usize::MAX);
    let mut decoder = JpegDecoder::new_with_options(ZCursor::new(bytes), options);
    decoder.decode_headers().map_err(|cause| cause.to_string())?;
    if let Some(own) = decoder.input_colorspace() {
        decoder.set_options(options.jpeg_set_out_colorspace(own));
    }
    decoder.decode().map_err(|cause| cause.to_string())
}

#[cfg(test)]
mod tests {
    use image::{DynamicImage, GrayImage, ImageFormat, RgbImage};

    use super::*;

    /// Noise as a JPEG, in colour and grey.
    fn pictures() -> Vec<Vec<u8>> {
        let noise = |place: u32| (place.wrapping_mul(2_654_435_761) >> 24) as u8;
        let colour = RgbImage::from_fn(61, 43, |x, y| {
            image::Rgb([0, 1, 2].map(|c| noise(3 * (61 * y + x) + c)))
        });
        let grey = GrayImage::from_fn(61, 43, |x, y| image::Luma([noise(61 * y + x)]));
        let written = |picture: DynamicImage| {
            let mut bytes = std::io::Cursor::new(Vec::new());
            picture.write_to(&mut bytes, ImageFormat::Jpeg).unwrap();
            bytes.into_inner()
        };
        vec![written(colour.into()), written(grey.into())]
    }

    fn is_all_there(bytes: &[u8]) -> bool {
        Layout::of(bytes).is_some_and(|layout| layout.is_whole(bytes).unwrap())
    }

    #[test]
    fn what_is_cut_is_found_whatever_follows() {
        const END: &[u8] = &[0xff, marker::EOI];
        for whole in pictures() {
            let data = whole.windows(2).rposition(|pair| pair == [0xff, marker::SOS]).unwrap() + 14;
            for length in (data..whole.len() - 4).step_by(13).chain([whole.len() - 5]) {
                let cut = &whole[..length];
                assert!(!is_all_there(cut), "{length} of {}", whole.len());
                for after in [END, &[END, &whole].concat(), &[END, b"abc", END].concat()] {
                    assert!(!is_all_there(&[cut, after].concat()), "{length} of {}", whole.len());
                }
            }
        }
    }

    #[test]
    fn what_is_whole_is_taken_whatever_follows() {
        for whole in pictures() {
            let data = &whole[..whole.len() - 2];
            let ends: [&[u8]; 4] = [b"", b"\xff", b"\xff\xff\xff\xff\xff", b"\xff\xfe\x00\x05abc"];
            for end in ends {
                for after in [b"".as_slice(), b"more", &whole] {
                    let bytes = [data, end, &[0xff, marker::EOI], after].concat();
                    assert!(is_all_there(&bytes), "{end:?} before the end");
                }
            }
        }
    }

    #[test]
    fn scans_that_never_came_are_found() {
        let frame = b"\xff\xd8\xff\xc2\x00\x0b\x08\x00\x08\x00\x08\x01\x01\x11\x00".as_slice();
        let scan = |first: u8, last: u8, bits: u8| {
            vec![0xff, marker::SOS, 0, 8, 1, 1, 0, first, last, bits, 0x55]
        };
        let end = [0xff, marker::EOI];
        let all = [frame, &scan(0, 0, 1), &scan(1, 63, 0), &scan(0, 0, 0x10), &end].concat();
        assert!(Layout::of(&all).is_some());
        let cut = [frame, &scan(0, 0, 1), &scan(1, 63, 0), &end].concat();
        assert!(Layout::of(&cut).is_none(), "the lowest bit of the first coefficient");
        let cut = [frame, &scan(1, 63, 0), &end].concat();
        assert!(Layout::of(&cut).is_none(), "the first coefficient");
    }
}
