// Changes to a message and its envelope, as values. Only RelayMilter converts them to smfi_* calls.

import InternetMessage

/// One change, in the terms of the milter protocol.
package enum Modification: Sendable, Hashable {
    /// Replaces the value of the `index`th field of this name (from 1), as the filter received
    /// them. Deletes the field if nil. The value is everything after the colon: leading white
    /// space, folds as CRLF and white space.
    case changeHeader(name: String, index: Int, rawValue: [UInt8]?)
    /// Inserts a field at a position: 0 is above everything, 1 below the MTA's own Received field.
    case insertHeader(position: Int, field: HeaderField)
    /// The new reverse-path with its angle brackets; `<>` is the null sender.
    case changeSender(String)
    /// A forward-path with its angle brackets.
    case addRecipient(String)
    /// Exactly the path of the RCPT command.
    case deleteRecipient(String)
    /// The complete new body, in consecutive pieces.
    case replaceBody([ArraySlice<UInt8>])
}
