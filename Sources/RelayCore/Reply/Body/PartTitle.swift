// The name of a part in a refusal, for the user who sent it: the name of the file, or plain words.

import InternetMessage

/// The entity of a message that is meant.
struct PartTitle {
    enum Place {
        case messageText
        case attachedMessageText
        /// One of the parts of a multipart, counted from 0.
        case part(Int, of: MIMEPart)
    }

    let place: Place

    /// Maximum characters of a file name that are shown.
    private static let maximumLength = 60

    /// Place and type, for the log. Never a file name, as that is the user's.
    func detail(_ part: MIMEPart) -> String {
        let type = "\(part.contentType.type)/\(part.contentType.subtype)"
        return switch place {
        case .messageText: "message text"
        case .attachedMessageText: "text of an attached message"
        case .part(let index, _): "part \(index + 1), \(type)"
        }
    }

    /// For the user. Every server on the way logs the answer, and the user gets it in a bounce.
    /// - Parameter isClean: whether no address of the user can be read in a file name, in any form.
    func words(_ part: MIMEPart, isClean: ([UInt8]) -> Bool) -> String {
        if let name = Self.fileName(of: part) {
            let decoded = EncodedWord.decode(Array(name.utf8)[...])
            guard isClean(Array(name.utf8)), isClean(Array(decoded.utf8)) else {
                return "an attachment"
            }
            let shown = decoded.prefix(Self.maximumLength).map { Self.isShown($0) ? $0 : "?" }
            return "\"" + String(shown) + (shown.count < decoded.count ? "..." : "") + "\""
        }
        let kind = Self.kind(of: part.contentType)
        return switch place {
        case .messageText:
            PartKind.isText(part.contentType) ? "the message text" : "the message, \(kind)"
        case .attachedMessageText:
            PartKind.isText(part.contentType)
                ? "the text of an attached message" : "an attached message, \(kind)"
        case .part(let index, let parent): "\(Self.ordinal(index, of: parent)), \(kind)"
        }
    }

    private static func fileName(of part: MIMEPart) -> String? {
        part.fileName.flatMap { $0.contains { !$0.isWhitespace } ? $0 : nil }
    }

    /// SMTP text is printable ASCII (RFC 5321 section 4.2). A quotation mark would end the name.
    private static func isShown(_ character: Character) -> Bool {
        guard let octet = character.asciiValue else { return false }
        return (0x20...0x7E).contains(octet) && character != "\"" && character != "%"
    }

    /// `the second attachment`, counted among the parts of the same multipart. A text that programs
    /// show is called a part.
    private static func ordinal(_ index: Int, of parent: MIMEPart) -> String {
        func isAttachment(_ part: MIMEPart) -> Bool {
            !part.contentType.matches("multipart") && !PartKind.isShown(part)
        }
        guard isAttachment(parent.children[index]) else {
            return "the " + ordinal(index + 1) + " part"
        }
        return "the " + ordinal(parent.children[...index].count(where: isAttachment))
            + " attachment"
    }

    private static func ordinal(_ number: Int) -> String {
        let words = [
            "first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth",
            "tenth",
        ]
        if (1...words.count).contains(number) { return words[number - 1] }
        return "\(number)"
            + (["st", "nd", "rd"].indices.contains(number % 10 - 1)
                && !(11...13).contains(number % 100)
                ? ["st", "nd", "rd"][number % 10 - 1] : "th")
    }

    /// The common word for a part of this type.
    private static func kind(of type: ContentType) -> String {
        func holds(_ words: String...) -> Bool { words.contains { type.subtype.contains($0) } }
        switch type.type {
        case "text":
            return holds("calendar")
                ? "a calendar entry"
                : holds("vcard", "directory")
                    ? "a contact card" : holds("html") ? "a web page" : "a text"
        case "image": return "a picture"
        case "audio": return "a sound"
        case "video": return "a video"
        case "message": return "a message"
        case "application":
            if type.subtype == "pdf" { return "a PDF" }
            if holds("tnef") { return "Outlook's own format" }
            if holds("spreadsheet", "excel") { return "a spreadsheet" }
            if holds("presentation", "powerpoint") { return "a presentation" }
            if holds("wordprocessing", "msword", "opendocument.text", "rtf") {
                return "a text document"
            }
            if holds("zip", "x-tar", "7z", "rar") { return "an archive" }
            if holds("pkcs7", "pgp", "signature") { return "a signature or key" }
            return "a file"
        default: return "a file"
        }
    }
}
