// Modifications that are recorded instead of sent, with the same checks as the real ones.

import Milter

/// Macros of an in-memory transaction.
final class TableMacros: MilterMacros {
    var table: [String: String]?

    init(_ table: [String: String]?) { self.table = table }

    subscript(name: String) -> String? { table?[name] }
}

/// Records modifications while `open`.
final class RecordingActions: MilterActions {
    private let allowed: MilterActionKinds
    let tableMacros: TableMacros
    var open = true
    private(set) var modifications = [RecordedModification]()
    private(set) var progressCount = 0
    /// Position of the last replaced body, which may grow. A filter may make other changes between
    /// two chunks.
    private var bodyPosition: Int?

    init(allowed: MilterActionKinds, macros: TableMacros) {
        self.allowed = allowed
        tableMacros = macros
    }

    var macros: any MilterMacros { tableMacros }

    private func check(_ kind: MilterActionKinds) throws(MilterActionError) {
        guard open else { throw .notAtEndOfMessage }
        guard allowed.contains(kind) else { throw .notNegotiated(kind) }
    }

    /// The value as it would arrive: checked, with folds normalized.
    private func value(_ value: ArraySlice<UInt8>) throws(MilterActionError) -> [UInt8] {
        let wire = try MilterWire.outgoing(fieldValue: value)
        return wire.withUnsafeBytes { MilterWire.incoming(fieldValue: $0) }
    }

    func changeHeader(
        _ name: String, index: Int, value: ArraySlice<UInt8>?
    ) throws(MilterActionError) {
        try check(.changeHeaders)
        try MilterWire.check(fieldName: name)
        guard Int32(exactly: index) != nil, index >= 1 else { throw .index(index) }
        var kept: [UInt8]?
        if let value { kept = try self.value(value) }
        modifications.append(.changeHeader(name: name, index: index, value: kept))
    }

    func insertHeader(
        at index: Int, _ name: String, value: ArraySlice<UInt8>
    ) throws(MilterActionError) {
        try check(.addHeaders)
        try MilterWire.check(fieldName: name)
        guard Int32(exactly: index) != nil, index >= 0 else { throw .index(index) }
        modifications.append(.insertHeader(index: index, name: name, value: try self.value(value)))
    }

    func addHeader(_ name: String, value: ArraySlice<UInt8>) throws(MilterActionError) {
        try check(.addHeaders)
        try MilterWire.check(fieldName: name)
        modifications.append(.addHeader(name: name, value: try self.value(value)))
    }

    func changeFrom(_ path: String, arguments: String?) throws(MilterActionError) {
        try check(.changeFrom)
        try MilterWire.check(path: path)
        if let arguments { try MilterWire.check(path: arguments) }
        modifications.append(.changeFrom(path: path, arguments: arguments))
    }

    func addRecipient(_ path: String, arguments: String?) throws(MilterActionError) {
        try check(arguments == nil ? .addRecipient : .addRecipientWithArguments)
        try MilterWire.check(path: path)
        if let arguments { try MilterWire.check(path: arguments) }
        modifications.append(.addRecipient(path: path, arguments: arguments))
    }

    func deleteRecipient(_ path: String) throws(MilterActionError) {
        try check(.deleteRecipient)
        try MilterWire.check(path: path)
        modifications.append(.deleteRecipient(path: path))
    }

    func replaceBody(chunk: UnsafeRawBufferPointer) throws(MilterActionError) {
        try check(.changeBody)
        if let bodyPosition, case .replaceBody(let body) = modifications[bodyPosition] {
            modifications[bodyPosition] = .replaceBody(body + chunk)
        } else {
            bodyPosition = modifications.count
            modifications.append(.replaceBody(Array(chunk)))
        }
    }

    func progress() throws(MilterActionError) {
        guard open else { throw .notAtEndOfMessage }
        progressCount += 1
    }
}
