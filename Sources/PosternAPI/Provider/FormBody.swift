// Bodies of type application/x-www-form-urlencoded, read strictly.

import HTTPTypes
import Hummingbird
import NIOCore
import Support

/// The parameters of a form. One without a value counts as absent (RFC 6749 section 3.1); names that no one asks for do not
/// matter.
struct FormBody: Sendable {
    /// Parameters that are looked at; requests have under ten.
    private static let maximum = 100

    private let values: [String: String]

    /// Reads a body. Throws `AuthError` for a parameter that is given twice, a bad escape, or text that is not UTF-8.
    init(_ octets: some Collection<UInt8>) throws(AuthError) {
        var values: [String: String] = [:]
        let pairs = octets.split(separator: UInt8(ascii: "&"), omittingEmptySubsequences: true)
        guard pairs.count <= Self.maximum else { throw .invalidRequest("there are more than \(Self.maximum) parameters") }
        for pair in pairs {
            let mark = pair.firstIndex(of: UInt8(ascii: "=")) ?? pair.endIndex
            guard let name = Self.decode(pair[..<mark]),
                let value = Self.decode(mark == pair.endIndex ? pair[mark...] : pair[pair.index(after: mark)...])
            else { throw .invalidRequest("the body is not valid application/x-www-form-urlencoded") }
            guard values.updateValue(value, forKey: name) == nil else { throw .invalidRequest("a parameter is given twice") }
        }
        self.values = values
    }

    /// The value; nil where it is absent or empty.
    subscript(name: String) -> String? { values[name].flatMap { $0.isEmpty ? nil : $0 } }

    /// The value, or `AuthError` (`invalid_request`).
    func required(_ name: String) throws(AuthError) -> String {
        guard let value = self[name] else { throw .invalidRequest("\(name) is missing") }
        return value
    }

    /// Undoes `+` and `%XX`; nil for a broken escape, a NUL, or what is not UTF-8.
    static func decode(_ octets: some Collection<UInt8>) -> String? {
        var result: [UInt8] = []
        result.reserveCapacity(octets.count)
        var rest = octets[...]
        while let octet = rest.popFirst() {
            switch octet {
            case UInt8(ascii: "+"): result.append(0x20)
            case UInt8(ascii: "%"):
                guard let high = rest.popFirst()?.hexValue, let low = rest.popFirst()?.hexValue, high | low != 0 else {
                    return nil
                }
                result.append(high << 4 | low)
            case 0: return nil
            default: result.append(octet)
            }
        }
        return String(validating: result, as: UTF8.self)
    }
}

extension Request {
    /// The body as a form. Throws `AuthError` or `Problem`.
    func form(_ context: APIContext) async throws -> FormBody {
        try requireType("application/x-www-form-urlencoded")
        return try FormBody(try await collect(context).readableBytesView)
    }
}
