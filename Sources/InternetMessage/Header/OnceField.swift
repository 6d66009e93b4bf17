// Fields that a message has at most once (RFC 5322 section 3.6, RFC 2045 section 3). If there are
// several, programs read the first, or the last, or both.

/// A field that, if repeated, makes two programs read different messages. From is not among them,
/// as `AuthorAddress` reads it. Nor are Cc, In-Reply-To and References, which some programs repeat:
/// all of their fields are read as one.
package enum OnceField: String, Sendable, Hashable, CaseIterable {
    case subject = "Subject"
    case date = "Date"
    case to = "To"
    case sender = "Sender"
    case replyTo = "Reply-To"
    case messageID = "Message-ID"
    /// These say what the body is. A signature covers one of them, and with another in front the
    /// same body is another message.
    case mimeVersion = "MIME-Version"
    case contentType = "Content-Type"
    case contentTransferEncoding = "Content-Transfer-Encoding"
    case contentDisposition = "Content-Disposition"

    /// Whether a repetition with the same value is harmless. Some programs write these twice.
    fileprivate var mayRepeatItsValue: Bool {
        switch self {
        case .mimeVersion, .contentType, .contentTransferEncoding, .contentDisposition: true
        case .subject, .date, .to, .sender, .replyTo, .messageID: false
        }
    }
}

extension HeaderSection {
    /// The first field, from the top, that repeats a field which is allowed only once; nil if none
    /// does.
    package var repeatedField: OnceField? {
        var seen: [OnceField: ArraySlice<UInt8>] = [:]
        for field in fields {
            guard let once = OnceField.allCases.first(where: { field.isNamed($0.rawValue) }) else {
                continue
            }
            let value = HeaderField.trim(field.rawValue)[...]
            if let earlier = seen[once], !once.mayRepeatItsValue || earlier != value { return once }
            seen[once] = value
        }
        return nil
    }
}
