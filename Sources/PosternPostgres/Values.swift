// Values on the wire: arguments as text or octets, columns in PostgreSQL's text form.

import CPQ
import Database
import Support

/// An argument in libpq's form.
struct BoundValue {
    /// nil for NULL; text ends with a zero octet.
    private let octets: [UInt8]?
    private let isBinary: Bool
    private let length: Int32

    init(_ value: SQLValue) {
        switch value {
        case .null: self.init(octets: nil)
        case .integer(let integer): self.init(text: String(integer))
        case .text(let text): self.init(text: text)
        case .blob(let blob):
            self.init(octets: blob + [0], isBinary: true, length: Int32(clamping: blob.count))
        }
    }

    /// The type for the server, which cannot always infer it from the statement. 0 leaves the
    /// decision to the server; nil for NULL.
    static func type(_ value: SQLValue) -> Oid? {
        switch value {
        case .integer: 20  // int8
        case .blob: 17  // bytea
        case .text: 0
        case .null: nil
        }
    }

    private init(octets: [UInt8]?, isBinary: Bool = false, length: Int32 = 0) {
        self.octets = octets
        self.isBinary = isBinary
        self.length = length
    }

    private init(text: String) {
        // A zero octet would end the value early, so it is replaced with an octet that the server
        // refuses.
        let utf8 = Array(text.utf8)
        self.init(octets: (utf8.contains(0) ? [0xFF] : utf8) + [0])
    }

    /// Passes arrays as PQexecPrepared expects them, valid within `body`.
    static func withPointers<T>(
        _ values: [BoundValue],
        _ body: (
            UnsafePointer<UnsafePointer<CChar>?>?, UnsafePointer<Int32>?, UnsafePointer<Int32>?
        ) -> T
    ) -> T {
        var storage: [UInt8] = []
        storage.reserveCapacity(values.reduce(0) { $0 + ($1.octets?.count ?? 0) })
        var offsets: [Int?] = []
        for value in values {
            offsets.append(value.octets == nil ? nil : storage.count)
            storage += value.octets ?? []
        }
        return storage.withUnsafeBytes { bytes in
            let start = bytes.baseAddress
            let pointers = offsets.map { offset in
                offset.flatMap { start?.advanced(by: $0).assumingMemoryBound(to: CChar.self) }
            }
            return body(pointers, values.map(\.length), values.map { $0.isBinary ? 1 : 0 })
        }
    }
}

/// Reads columns. The text form works for every type, including the numeric of a sum.
enum ColumnText {
    private static let integers: Set<Oid> = [20, 21, 23, 26]  // int8, int2, int4, oid
    private static let numeric: Oid = 1700
    private static let bytea: Oid = 17
    private static let boolean: Oid = 16

    static func value(_ text: UnsafeRawBufferPointer, type: Oid) throws(PostgresFailure) -> SQLValue
    {
        switch type {
        case bytea: return .blob(try octets(text))
        case boolean: return (text.first == UInt8(ascii: "t")).sqlValue
        case _ where integers.contains(type):
            guard let integer = Int64(String(decoding: text, as: UTF8.self)) else {
                throw unexpected
            }
            return .integer(integer)
        case numeric:
            // The sum of integers is an integer. A number with a fraction stays text, as with
            // SQLite.
            let string = String(decoding: text, as: UTF8.self)
            return Int64(string).map(SQLValue.integer) ?? .text(string)
        default: return .text(String(decoding: text, as: UTF8.self))
        }
    }

    /// The octets of `\x` followed by two hexadecimal digits for each octet.
    private static func octets(_ text: UnsafeRawBufferPointer) throws(PostgresFailure) -> [UInt8] {
        guard text.count >= 2, text[0] == UInt8(ascii: "\\"), text[1] == UInt8(ascii: "x") else {
            throw unexpected
        }
        guard let octets = Hex.decode(UnsafeRawBufferPointer(rebasing: text[2...])) else {
            throw unexpected
        }
        return octets
    }

    private static var unexpected: PostgresFailure {
        PostgresFailure(.permanent(.unexpectedData, "a column of a result has an unexpected form"))
    }
}
