// The elements in which programs put a quotation, recognised by class, id or style. In lower case.

import Support

extension QuoteForms {
    private static func set(_ names: String) -> Set<[UInt8]> {
        Set(names.utf8.split { $0 == 0x20 || $0 == 0x0A }.map { Array($0) })
    }

    /// Gmail, Yahoo, Proton, Tuta, Zoho, Skiff, Superhuman, Spark, Nylas, Front, FairEmail,
    /// Thunderbird, Apple Mail, Outlook, Zimbra, QQ, NetEase, 139, HEY.
    private static let quoteClasses = set(
        """
        gmail_quote gmail_extra gmail_quote_container yahoo_quoted protonmail_quote tutanota_quote zmail_extra skiff_quote
        sh-quoted-content messagereplysection nylas-quote front-blockquote fairemail_quote moz-forward-container
        moz-email-headers-table appleoriginalcontents outlookmessageheader elided-text ntes-mailmaster-quote qmbox includetail
        iosymail mail-quote quoted_header crisp-quote freshdesk_quote zendesk_quote helpscout-quote quotedtext
        """)

    private static let quoteIDs = set(
        """
        mail-editor-reference-message-container olk_src_body_section isforwardcontent isreplycontent mailcontent origbody
        reply139content orimsghtmlseperator messagereplysection quote quoted_header ms-outlook-mobile-body-separator-line
        """)

    private static let attributionClasses = set(
        "gmail_attr moz-cite-prefix reply-intro fairemail_attribution zmail_extra_hr")

    private static let tails = set(
        "divrplyfwdmsg appendonsend stopspelling replysplit zwchr x_divrplyfwdmsg x_appendonsend lineseparator msg-footer-separator"
    )

    static func isQuoteClass(_ name: [UInt8]) -> Bool {
        quoteClasses.contains(name) || hasQuotePrefix(name)
    }

    /// - Parameter id: of an element, or its name.
    static func isQuoteID(_ id: [UInt8]) -> Bool { quoteIDs.contains(id) || hasQuotePrefix(id) }

    /// Yahoo numbers its elements. Outlook writes `x_` before the names in the mail that it
    /// answers.
    private static func hasQuotePrefix(_ name: [UInt8]) -> Bool {
        name.starts(with: "yahoo_quoted_".utf8) || name.starts(with: "yqt".utf8)
            || name.starts(with: "ydp".utf8) && name.suffix(12).elementsEqual("yahoo_quoted".utf8)
            || name.starts(with: "x_".utf8) && quoteClasses.contains(Array(name.dropFirst(2)))
    }

    static func isAttributionClass(_ name: [UInt8]) -> Bool { attributionClasses.contains(name) }

    /// Whether an element is above a quotation that has no container of its own.
    static func isTail(id: [UInt8], tag: [UInt8]) -> Bool { tails.contains(id) }

    /// The line that Outlook draws above its header block (since 2003), and the line next to its
    /// quotations.
    static func isBorder(_ style: [UInt8]) -> Bool {
        let plain = style.filter { $0 > 0x20 }
        return borders.contains { border in
            plain.count >= border.count
                && plain.indices.contains {
                    plain[$0] == border[0] && plain[$0...].starts(with: border)
                }
        }
    }

    private static let borders = [
        "border-top:solid#e1e1e11.0pt", "border-top:solid#b5c4df1.0pt",
        "border-top:1pxsolid#e1e1e1",
        "border-left:solidblue1.5pt",
    ].map { Array($0.utf8) }
}
