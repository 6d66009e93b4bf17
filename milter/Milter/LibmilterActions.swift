// Modifications and macros of a live session: the only caller of the smfi_* functions
// that modify a message.

import CMilter

/// Reads macros in the context of the running callback. Between callbacks there are no macros.
final class ContextMacros: MilterMacros {
    var context: OpaquePointer?

    subscript(name: String) -> String? {
        guard let context else { return nil }
        return name.withCString { name in
            guard let value = smfi_getsymval(context, UnsafeMutablePointer(mutating: name)) else {
                return nil
            }
            return String(cString: value)
        }
    }
}

/// Sends modifications to the MTA while `context` is set, which is during `endOfMessage`.
final class LibmilterActions: MilterActions {
    /// Maximum octets of body in one call. libmilter divides them into chunks of 65,535 and takes
    /// an Int32.
    private static let bodySlice = 1 << 24

    private let negotiated: MilterActionKinds
    private let contextMacros: ContextMacros
    var context: OpaquePointer?

    init(negotiated: MilterActionKinds, macros: ContextMacros) {
        self.negotiated = negotiated
        contextMacros = macros
    }

    var macros: any MilterMacros { contextMacros }

    private func context(for kind: MilterActionKinds) throws(MilterActionError) -> OpaquePointer {
        guard let context else { throw .notAtEndOfMessage }
        guard negotiated.contains(kind) else { throw .notNegotiated(kind) }
        return context
    }

    func changeHeader(
        _ name: String, index: Int, value: ArraySlice<UInt8>?
    ) throws(MilterActionError) {
        let context = try context(for: .changeHeaders)
        try MilterWire.check(fieldName: name)
        guard let index32 = Int32(exactly: index), index32 >= 1 else { throw .index(index) }
        var wire: [UInt8]?
        if let value { wire = try MilterWire.outgoing(fieldValue: value) }
        try sent(
            "smfi_chgheader",
            Self.withCStrings(name, wire) { smfi_chgheader(context, $0, index32, $1) })
    }

    func insertHeader(
        at index: Int, _ name: String, value: ArraySlice<UInt8>
    ) throws(MilterActionError) {
        let context = try context(for: .addHeaders)
        try MilterWire.check(fieldName: name)
        guard let index32 = Int32(exactly: index), index32 >= 0 else { throw .index(index) }
        let wire = try MilterWire.outgoing(fieldValue: value)
        try sent(
            "smfi_insheader",
            Self.withCStrings(name, wire) { smfi_insheader(context, index32, $0, $1) })
    }

    func addHeader(_ name: String, value: ArraySlice<UInt8>) throws(MilterActionError) {
        let context = try context(for: .addHeaders)
        try MilterWire.check(fieldName: name)
        let wire = try MilterWire.outgoing(fieldValue: value)
        try sent(
            "smfi_addheader", Self.withCStrings(name, wire) { smfi_addheader(context, $0, $1) })
    }

    func changeFrom(_ path: String, arguments: String?) throws(MilterActionError) {
        let context = try context(for: .changeFrom)
        try MilterWire.check(path: path)
        if let arguments { try MilterWire.check(path: arguments) }
        try sent(
            "smfi_chgfrom",
            Self.withCStrings(path, arguments.map { Array($0.utf8) }) {
                smfi_chgfrom(context, $0, $1)
            })
    }

    func addRecipient(_ path: String, arguments: String?) throws(MilterActionError) {
        let context = try context(
            for: arguments == nil ? .addRecipient : .addRecipientWithArguments)
        try MilterWire.check(path: path)
        guard let arguments else {
            return try sent(
                "smfi_addrcpt",
                Self.withCStrings(path, nil) { path, _ in smfi_addrcpt(context, path) })
        }
        try MilterWire.check(path: arguments)
        try sent(
            "smfi_addrcpt_par",
            Self.withCStrings(path, Array(arguments.utf8)) { smfi_addrcpt_par(context, $0, $1) })
    }

    func deleteRecipient(_ path: String) throws(MilterActionError) {
        let context = try context(for: .deleteRecipient)
        try MilterWire.check(path: path)
        try sent(
            "smfi_delrcpt", Self.withCStrings(path, nil) { path, _ in smfi_delrcpt(context, path) })
    }

    func replaceBody(chunk: UnsafeRawBufferPointer) throws(MilterActionError) {
        let context = try context(for: .changeBody)
        var rest = chunk[...]
        repeat {
            let slice = UnsafeRawBufferPointer(rebasing: rest.prefix(Self.bodySlice))
            let bytes = UnsafeMutablePointer(
                mutating: slice.baseAddress?.assumingMemoryBound(to: UInt8.self))
            try sent("smfi_replacebody", smfi_replacebody(context, bytes, Int32(slice.count)))
            rest = rest.dropFirst(slice.count)
        } while !rest.isEmpty
    }

    func progress() throws(MilterActionError) {
        guard let context else { throw .notAtEndOfMessage }
        try sent("smfi_progress", smfi_progress(context))
    }

    private func sent(_ function: String, _ status: Int32) throws(MilterActionError) {
        guard status == MI_SUCCESS else { throw .notSent(function) }
    }

    /// libmilter takes `char *` but copies the text. The strings were checked for NUL.
    private static func withCStrings(
        _ first: String, _ second: [UInt8]?,
        _ body: (UnsafeMutablePointer<CChar>?, UnsafeMutablePointer<CChar>?) -> Int32
    ) -> Int32 {
        first.withCString { first in
            let first = UnsafeMutablePointer(mutating: first)
            guard let second else { return body(first, nil) }
            return (second.map { CChar(bitPattern: $0) } + [0]).withUnsafeBufferPointer {
                body(first, UnsafeMutablePointer(mutating: $0.baseAddress))
            }
        }
    }
}
