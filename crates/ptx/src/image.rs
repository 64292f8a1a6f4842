//! Images: PTX as programs hand it over.

use std::borrow::Cow;

/// The text of a PTX image: what stands before the first zero byte, or all of it. Bytes that are no UTF-8 are
/// replaced, so that reading the text finds an error at their place, unless it is in a comment.
pub fn text_of_image(image: &[u8]) -> Cow<'_, str> {
    let end = image.iter().position(|&b| b == 0).unwrap_or(image.len());
    String::from_utf8_lossy(&image[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn up_to_zero() {
        assert_eq!(text_of_image(b".version 8.0\0rest"), ".version 8.0");
        assert_eq!(text_of_image(b".version 8.0"), ".version 8.0");
        assert_eq!(text_of_image(b""), "");
    }

    #[test]
    fn bytes_that_are_no_text_are_errors_in_their_place() {
        let text = text_of_image(b".version 8.0\n.target sm_80 // \xfc\n\xff.visible .entry k() { ret; }");
        let errors = crate::parse(&text).unwrap_err();
        assert_eq!((errors.list()[0].line, errors.list()[0].column), (3, 1));
    }
}
