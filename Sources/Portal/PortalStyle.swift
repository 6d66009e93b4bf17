// How the page looks: one style sheet and one mark, both our own (Templates/style.css, mark.svg). Colours are at the head of the
// sheet, for light and for dark; a test computes their contrast.

import MailCrypto
import Support

enum PortalStyle {
    /// Changes with the style sheet, the mark or the script.
    static let version: String = String(
        decoding: Base32.encode(SHA256.hash(Array((css + icon + script).utf8)).prefix(5)), as: UTF8.self)

    static let css = String(decoding: PackageResources.style_css, as: UTF8.self)

    /// For what no page can do without one: passkeys, and copying.
    static let script = String(decoding: PackageResources.page_js, as: UTF8.self)

    /// A gate with a small door in it: a file of its own, in a colour for light and for dark tabs.
    static let icon = String(decoding: PackageResources.mark_svg.dropLast(), as: UTF8.self)

    /// The mark within a page, in the colour of the text around it.
    static let mark =
        #"<svg class="mark" viewBox="0 0 32 32" width="32" height="32" aria-hidden="true" focusable="false">"#
        + icon.drop { $0 != ">" }.dropFirst()
}
