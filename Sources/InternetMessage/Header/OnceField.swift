// Fields that a message has at most once (RFC 5322 section 3.6). If there are several, programs
// read the first, or the last, or both.

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
}

extension HeaderSection {
    /// The first field, from the top, that repeats a field which is allowed only once; nil if none
    /// does.
    package var repeatedField: OnceField? {
        var seen: Set<OnceField> = []
        for field in fields {
            guard let once = OnceField.allCases.first(where: { field.isNamed($0.rawValue) }) else {
                continue
            }
            guard seen.insert(once).inserted else { return once }
        }
        return nil
    }
}
