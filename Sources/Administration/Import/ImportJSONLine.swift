// One JSON object per line.

import Database
import Support

/// Reads lines of JSON objects with the columns as keys; values are strings, numbers,
/// truth values or null.
enum ImportJSONLine {
    /// The maximum number of octets of one line.
    static let maximum = 65_536

    /// Throws a refusal with the reason, without repeating the line. A duplicate key is refused:
    /// another reader could use the other value.
    static func fields(_ octets: [UInt8]) throws(StoreFailure) -> ImportFields {
        guard octets.count <= maximum else {
            throw .refused(.invalid, "the line is longer than \(maximum) octets")
        }
        let value: JSONValue
        do {
            value = try StrictJSON.parse(octets, limit: maximum)
        } catch {
            throw .refused(.invalid, "the line is not JSON: \(error.message)")
        }
        guard case .object(let object) = value else {
            throw .refused(.invalid, "the line is not a JSON object")
        }
        var fields = ImportFields()
        for member in object.members {
            // An unknown key may be a misplaced inbox, so the error does not repeat it.
            guard let column = ImportColumn(rawValue: member.name) else {
                throw .refused(.invalid, "a key is not one of: \(ImportColumn.names)")
            }
            switch member.value {
            case .null: continue
            case .bool(let flag): fields[column] = flag ? "true" : "false"
            case .number(let number) where number.integer != nil:
                fields[column] = number.integer.map { "\($0)" }
            case .string(let text): fields[column] = text
            default:
                throw .refused(
                    .invalid, "\(column.rawValue) is neither text, a whole number, true nor false")
            }
        }
        return fields
    }
}
