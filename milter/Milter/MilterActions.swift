// The modifications that a filter may request at the end of the message.

/// The reason why a modification was not sent. The message must then not be accepted: rethrow, or
/// answer with a temporary failure.
package enum MilterActionError: Error, Hashable, CustomStringConvertible {
    /// Called before or after `endOfMessage`.
    case notAtEndOfMessage
    /// The action is not among the handler's needs, so it was not negotiated.
    case notNegotiated(MilterActionKinds)
    /// A field name that is empty or contains a colon, or a character that is not printable ASCII
    /// (RFC 5322 section 2.2).
    case fieldName
    /// A field value with a NUL, a bare CR, or a line end without white space after it, which would
    /// begin a new field.
    case fieldValue
    /// An index below 1 (changeHeader) or below 0 (insertHeader), or beyond 32 bits.
    case index(Int)
    /// A path or argument that is empty, or contains a NUL, CR or LF.
    case path
    /// libmilter did not accept it: the connection to the MTA is lost.
    case notSent(String)

    package var description: String {
        switch self {
        case .notAtEndOfMessage: "a modification outside the end of the message"
        case .notNegotiated: "a modification that the handler did not declare among its needs"
        case .fieldName: "a header field name that is empty or has characters that are not allowed"
        case .fieldValue:
            "a header field value with a NUL, a bare CR, or a line end that does not fold"
        case .index(let index): "header field index \(index) is out of range"
        case .path: "an envelope path or argument that is empty or has a line end or NUL"
        case .notSent(let function): "\(function) failed: the connection to the MTA is closed"
        }
    }
}

/// Modifications of the message at its end. Valid only during `endOfMessage`. The only caller of
/// the `smfi_*` functions that modify.
///
/// When a call returns, the modification was sent; an MTA does not confirm it. Field values are
/// everything after the colon in the final message: leading space included, with folds as CRLF (or
/// LF) and white space.
package protocol MilterActions: AnyObject {
    var macros: any MilterMacros { get }

    /// Replaces the value of the `index`-th field (from 1) of that name, and its name in the given
    /// letter case; `nil` deletes the field. Names compare case-insensitively; the MTA's own
    /// Received does not count.
    ///
    /// The index counts the fields as they are *at this moment*. A deletion moves the later fields
    /// of that name up by one. Inserted and added fields count too. So go from the highest index to
    /// the lowest. Beyond the last field, a value is appended as a new field, and a deletion does
    /// nothing.
    func changeHeader(
        _ name: String, index: Int, value: ArraySlice<UInt8>?) throws(MilterActionError)
    /// Inserts a field at a position (from 0) among all fields as they are at this moment,
    /// including the MTA's own Received. Position 0 is above it; 1 is below it if nothing was
    /// inserted above; beyond the last field, the new field is appended.
    func insertHeader(
        at index: Int, _ name: String, value: ArraySlice<UInt8>) throws(MilterActionError)
    /// Appends a field below all others.
    func addHeader(_ name: String, value: ArraySlice<UInt8>) throws(MilterActionError)
    /// Replaces the envelope sender: `<>`, or an address with or without brackets. `arguments`:
    /// ESMTP, separated by spaces.
    func changeFrom(_ path: String, arguments: String?) throws(MilterActionError)
    /// Adds an envelope recipient, with ESMTP arguments such as `NOTIFY=NEVER`.
    func addRecipient(_ path: String, arguments: String?) throws(MilterActionError)
    /// Removes the recipient. If `path` is not exactly as passed to `recipient`, nothing is
    /// removed, without an error.
    func deleteRecipient(_ path: String) throws(MilterActionError)
    /// The first call replaces the whole body; each later call appends to the replacement. Lines
    /// end in CRLF.
    func replaceBody(chunk: UnsafeRawBufferPointer) throws(MilterActionError)
    /// Reports to the MTA that the filter is still working, to prevent a timeout (Postfix:
    /// milter_content_timeout).
    func progress() throws(MilterActionError)
}

extension MilterActions {
    /// Same as `changeHeader(_:index:value:)`, with a whole array.
    package func changeHeader(_ name: String, index: Int, value: [UInt8]) throws(MilterActionError)
    {
        try changeHeader(name, index: index, value: value[...])
    }

    /// Deletes the `index`-th field of that name: `changeHeader` without a value.
    package func deleteHeader(_ name: String, index: Int) throws(MilterActionError) {
        try changeHeader(name, index: index, value: nil)
    }

    /// Same as `insertHeader(at:_:value:)`, with a whole array.
    package func insertHeader(
        at index: Int, _ name: String, value: [UInt8]
    ) throws(MilterActionError) {
        try insertHeader(at: index, name, value: value[...])
    }

    /// Same as `addHeader(_:value:)`, with a whole array.
    package func addHeader(_ name: String, value: [UInt8]) throws(MilterActionError) {
        try addHeader(name, value: value[...])
    }

    package func changeFrom(_ path: String) throws(MilterActionError) {
        try changeFrom(path, arguments: nil)
    }

    package func addRecipient(_ path: String) throws(MilterActionError) {
        try addRecipient(path, arguments: nil)
    }

    /// Replaces the whole body by the parts, one after another. Without parts, or with only empty
    /// ones, the body becomes empty.
    package func replaceBody(
        _ parts: some Sequence<some Collection<UInt8>>
    ) throws(MilterActionError) {
        var sent = false
        for part in parts where !part.isEmpty {
            let outcome = part.withContiguousStorageIfAvailable { replaceBodyResult($0) }
            switch outcome ?? Array(part).withUnsafeBufferPointer({ replaceBodyResult($0) }) {
            case .success: sent = true
            case .failure(let error): throw error
            }
        }
        if !sent { try replaceBody(chunk: UnsafeRawBufferPointer(start: nil, count: 0)) }
    }

    /// Typed throws do not cross `withContiguousStorageIfAvailable`.
    private func replaceBodyResult(
        _ buffer: UnsafeBufferPointer<UInt8>
    ) -> Result<Void, MilterActionError> {
        do {
            return .success(try replaceBody(chunk: UnsafeRawBufferPointer(buffer)))
        } catch {
            return .failure(error)
        }
    }
}

/// The only code that converts field names, values and paths for libmilter. MilterTesting also uses
/// it, so an in-memory test refuses what the real server refuses.
package enum MilterWire {
    /// Throws unless `name` is a field name (RFC 5322 section 2.2:
    /// printable ASCII without a colon).
    package static func check(fieldName name: String) throws(MilterActionError) {
        guard !name.isEmpty,
            name.utf8.allSatisfy({ (0x21...0x7E).contains($0) && $0 != UInt8(ascii: ":") })
        else {
            throw .fieldName
        }
    }

    /// A field value in the form that libmilter takes under SMFIP_HDR_LEADSPC: folds as LF and
    /// white space, leading white space kept. An empty value becomes one space, because an empty
    /// one means deletion in libmilter.
    package static func outgoing(
        fieldValue value: ArraySlice<UInt8>
    ) throws(MilterActionError) -> [UInt8] {
        var out = [UInt8]()
        out.reserveCapacity(value.count + 1)
        var index = value.startIndex
        while index < value.endIndex {
            let octet = value[index]
            index += 1
            switch octet {
            case 0x00: throw .fieldValue
            case 0x0D, 0x0A:
                if octet == 0x0D {
                    guard index < value.endIndex, value[index] == 0x0A else { throw .fieldValue }
                    index += 1
                }
                guard index < value.endIndex, value[index] == 0x20 || value[index] == 0x09 else {
                    throw .fieldValue
                }
                out.append(0x0A)
            default: out.append(octet)
            }
        }
        return out.isEmpty ? [0x20] : out
    }

    /// A field value in the form that a session receives: folds, which arrive as LF alone, become
    /// CRLF.
    package static func incoming(fieldValue value: UnsafeRawBufferPointer) -> [UInt8] {
        var out = [UInt8]()
        out.reserveCapacity(value.count + 16)
        var previous: UInt8 = 0
        for octet in value {
            if octet == 0x0A && previous != 0x0D { out.append(0x0D) }
            out.append(octet)
            previous = octet
        }
        return out
    }

    /// Throws unless `path` can be in an envelope command.
    package static func check(path: String) throws(MilterActionError) {
        guard !path.isEmpty, !path.utf8.contains(where: { $0 == 0 || $0 == 0x0D || $0 == 0x0A })
        else { throw .path }
    }
}
