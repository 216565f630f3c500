//! What a report tells about classes and images, as HTML.

use std::collections::BTreeMap;
use std::fmt::Write;

use cupola_core::{Error, Result};

use crate::markup::escaped;

const OP: &str = "Report";

/// An image on a report.
#[derive(Clone, Debug)]
pub struct Picture<'a> {
    /// Its bytes: rows of pixels, the channels of each beside each other.
    pub pixels: &'a [u8],
    /// Height, width and channels: 1 of grey, 3 of red, green and blue, or 4 with how opaque it is.
    pub shape: [usize; 3],
    /// What stands below it; a line for each.
    pub caption: Vec<String>,
}

/// The most classes of a table with a row and a column for each.
const WIDEST: usize = 100;

/// How many pairs of classes are shown where there are more.
const PAIRS: usize = 50;

/// The most classes that [`confusion`] counts.
const MOST: usize = 4096;

/// Looks whether there are as many labels as predictions, and all are classes.
fn check(classes: usize, labels: &[usize], predicted: &[usize]) -> Result<()> {
    if labels.len() != predicted.len() {
        let detail = format!("{} labels, but {} predictions", labels.len(), predicted.len());
        return Err(Error::argument(OP, detail));
    }
    match labels.iter().chain(predicted).find(|&&class| class >= classes) {
        Some(wrong) => {
            let detail = format!("{wrong} is none of the classes, which are {classes}");
            Err(Error::argument(OP, detail))
        }
        None => Ok(()),
    }
}

/// How often each class, a row each, was taken for each.
///
/// # Errors
/// Where there are not as many labels as predictions, or one is no class, and for more than 4096 classes.
pub fn confusion(classes: usize, labels: &[usize], predicted: &[usize]) -> Result<Vec<Vec<u64>>> {
    check(classes, labels, predicted)?;
    if classes > MOST {
        let detail = format!("{classes} classes are more than {MOST}");
        return Err(Error::argument(OP, detail));
    }
    let mut counts = vec![vec![0; classes]; classes];
    labels.iter().zip(predicted).for_each(|(&label, &class)| counts[label][class] += 1);
    Ok(counts)
}

/// What was taken for what, with a heading: a table of all classes where they fit, else of those mistaken most.
pub fn mistaken(classes: &[String], labels: &[usize], predicted: &[usize]) -> Result<String> {
    if classes.len() <= WIDEST {
        return Ok(matrix(classes, &confusion(classes.len(), labels, predicted)?));
    }
    check(classes.len(), labels, predicted)?;
    let mut counts: BTreeMap<(usize, usize), u64> = BTreeMap::new();
    for (&label, &class) in labels.iter().zip(predicted).filter(|(label, class)| label != class) {
        *counts.entry((label, class)).or_default() += 1;
    }
    let mut pairs: Vec<_> = counts.into_iter().collect();
    pairs.sort_by_key(|&(_, count)| std::cmp::Reverse(count));
    let mut page = format!(
        "<h2>What was taken for what</h2>\n<p>Of {} classes those that were mistaken most.</p>\n<table>\n\
         <tr><th>class</th><th>taken for</th><th>times</th></tr>\n",
        classes.len()
    );
    for ((label, class), count) in pairs.into_iter().take(PAIRS) {
        let (label, class) = (escaped(&classes[label]), escaped(&classes[class]));
        let _ = writeln!(page, "<tr><td>{label}</td><td>{class}</td><td>{count}</td></tr>");
    }
    Ok(page + "</table>\n")
}

/// A confusion matrix with its heading.
fn matrix(classes: &[String], counts: &[Vec<u64>]) -> String {
    let mut page = String::from(
        "<h2>What was taken for what</h2>\n<p>A row for each true class, a column for each \
         predicted one.</p>\n<table>\n<tr><th></th>",
    );
    for class in 0..classes.len() {
        let _ = write!(page, "<th>{class}</th>");
    }
    page += "</tr>\n";
    for (label, (name, row)) in classes.iter().zip(counts).enumerate() {
        let most = row.iter().sum::<u64>().max(1) as f64;
        let _ = write!(page, "<tr><td>{label} {}</td>", escaped(name));
        for (class, &count) in row.iter().enumerate() {
            let kind = if class == label { " class=\"right\"" } else { "" };
            let shade = 0.6 * count as f64 / most;
            let _ = write!(
                page,
                "<td{kind} style=\"background:rgba(0,114,178,{shade:.2})\">{count}</td>"
            );
        }
        page += "</tr>\n";
    }
    page + "</table>\n"
}

/// Images with their captions, below a heading and a line about them.
pub fn pictures(title: &str, about: &str, all: &[Picture<'_>]) -> Result<String> {
    let mut page = format!("<h2>{}</h2>\n<p>{}</p>\n", escaped(title), escaped(about));
    for picture in all {
        let caption: Vec<String> = picture.caption.iter().map(|line| escaped(line)).collect();
        let _ = writeln!(
            page,
            "<figure><img alt=\"{}\" src=\"data:image/png;base64,{}\"><figcaption>{}</figcaption></figure>",
            caption.join(", "),
            base64(&png(picture)?),
            caption.join("<br>")
        );
    }
    Ok(page)
}

fn png(picture: &Picture<'_>) -> Result<Vec<u8>> {
    let [height, width, channels] = picture.shape;
    let colour = match channels {
        1 => png::ColorType::Grayscale,
        3 => png::ColorType::Rgb,
        4 => png::ColorType::Rgba,
        _ => {
            let detail = format!("an image has 1, 3 or 4 channels, not {channels}");
            return Err(Error::argument(OP, detail));
        }
    };
    let failed = |cause: &dyn std::fmt::Display| {
        let detail = format!("an image of {height} by {width} pixels: {cause}");
        Error::argument(OP, detail)
    };
    let side = |pixels: usize| u32::try_from(pixels).map_err(|cause| failed(&cause));
    let mut out = Vec::new();
    let mut encoder = png::Encoder::new(&mut out, side(width)?, side(height)?);
    encoder.set_color(colour);
    let mut writer = encoder.write_header().map_err(|cause| failed(&cause))?;
    writer.write_image_data(picture.pixels).map_err(|cause| failed(&cause))?;
    writer.finish().map_err(|cause| failed(&cause))?;
    Ok(out)
}

/// RFC 4648.
fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let word = chunk.iter().fold(0_u32, |word, &byte| word << 8 | u32::from(byte));
        let word = word << (8 * (3 - chunk.len()));
        for place in 0..4 {
            match place <= chunk.len() {
                true => out.push(char::from(DIGITS[(word >> (18 - 6 * place)) as usize & 63])),
                false => out.push('='),
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_is_that_of_the_rfc() {
        let texts =
            [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foob", "Zm9vYg==")];
        for (text, coded) in texts {
            assert_eq!(base64(text.as_bytes()), coded);
        }
    }

    #[test]
    fn classes_are_counted_or_refused() {
        let counts = confusion(3, &[0, 1, 1, 2], &[0, 1, 2, 2]).unwrap();
        assert_eq!(counts, [[1, 0, 0], [0, 1, 1], [0, 0, 1]]);
        for (labels, predicted) in [(&[0, 3][..], &[0, 0][..]), (&[0, 0], &[0, 9]), (&[0], &[])] {
            assert!(confusion(3, labels, predicted).is_err(), "{labels:?} {predicted:?}");
        }
    }

    #[test]
    fn of_many_classes_those_mistaken_most_are_shown() {
        let classes: Vec<String> = (0..20_000).map(|n| format!("c{n}")).collect();
        let page = mistaken(&classes, &[3, 3, 7, 19_999], &[5, 5, 7, 0]).unwrap();
        let row = page.lines().find(|line| line.contains("c3")).unwrap();
        assert_eq!(row, "<tr><td>c3</td><td>c5</td><td>2</td></tr>");
        assert!(page.contains("c19999") && !page.contains("c7<"), "{page}");
        assert!(mistaken(&classes, &[20_000], &[0]).is_err());
        assert!(confusion(20_000, &[0], &[0]).is_err());
    }

    #[test]
    fn images_that_are_none_are_refused() {
        let of = |shape, pixels| Picture { pixels, shape, caption: vec!["<x>".into()] };
        let page = pictures("a", "b", &[of([1, 2, 3], &[0, 1, 2, 3, 4, 5])]).unwrap();
        assert!(page.contains("base64,iVBORw0KGgo") && page.contains("&lt;x&gt;"), "{page}");
        for wrong in [of([1, 2, 2], &[0; 4]), of([2, 2, 1], &[0; 3]), of([0, 2, 1], &[])] {
            assert!(pictures("a", "b", &[wrong]).is_err());
        }
    }
}
