//! Text within HTML and SVG.

/// `text` as it stands within HTML and SVG, between tags and in attributes.
///
/// ```
/// assert_eq!(cupola::markup::escaped("a < \"b\""), "a &lt; &quot;b&quot;");
/// ```
pub fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
