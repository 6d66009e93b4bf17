// Shared by the --batch modes: one JSON object per line as input and as output; errors are
// responses.

import Foundation
import MailAuth

/// An `id`, unchanged from the request: any JSON value.
indirect enum BatchID: Codable {
    case null, flag(Bool), whole(Int64), natural(UInt64), number(Double), text(String), list(
        [BatchID]), object([String: BatchID])

    init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        if container.decodeNil() {
            self = .null
        } else if let value = try? container.decode(Bool.self) {
            self = .flag(value)
        } else if let value = try? container.decode(Int64.self) {
            self = .whole(value)
        } else if let value = try? container.decode(UInt64.self) {
            self = .natural(value)
        } else if let value = try? container.decode(Double.self) {
            self = .number(value)
        } else if let value = try? container.decode(String.self) {
            self = .text(value)
        } else if let value = try? container.decode([BatchID].self) {
            self = .list(value)
        } else {
            self = .object(try container.decode([String: BatchID].self))
        }
    }

    func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        switch self {
        case .null: try container.encodeNil()
        case .flag(let value): try container.encode(value)
        case .whole(let value): try container.encode(value)
        case .natural(let value): try container.encode(value)
        case .number(let value): try container.encode(value)
        case .text(let value): try container.encode(value)
        case .list(let value): try container.encode(value)
        case .object(let value): try container.encode(value)
        }
    }
}

/// Lines of the --batch modes.
enum BatchLine {
    /// The response to a line that cannot be processed.
    struct Failure: Encodable {
        let id: BatchID?
        /// Describes the error.
        let error: String
    }

    private struct OnlyID: Decodable {
        let id: BatchID?
    }

    /// The id of a line, even if the rest of the line is not valid.
    static func id(in line: String) -> BatchID? {
        (try? JSONDecoder().decode(OnlyID.self, from: Data(line.utf8)))?.id ?? .null
    }

    /// Prints one object as one line, without buffering: the caller may be waiting for it.
    static func print(_ value: some Encodable) throws {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        encoder.keyEncodingStrategy = .convertToSnakeCase
        try BatchOutput.write(try encoder.encode(value) + Data("\n".utf8))
    }

    /// Describes the error of a line.
    static func describe(_ error: any Error) -> String {
        switch error {
        case let error as CommandError: error.message
        case DecodingError.keyNotFound(let key, _): "\(key.stringValue) is missing"
        case DecodingError.typeMismatch(_, let context),
            DecodingError.valueNotFound(_, let context):
            context.codingPath.isEmpty
                ? "the line is not a JSON object"
                : "\(context.codingPath.map(\.stringValue).joined(separator: ".")) has the wrong type"
        case DecodingError.dataCorrupted(let context):
            context.codingPath.isEmpty ? "not JSON" : context.debugDescription
        default: "\(error)"
        }
    }
}

/// A time: seconds since 1970, or ISO 8601.
struct TimeArgument: Decodable {
    /// Since 1970.
    let seconds: Int64

    init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        if let number = try? container.decode(Double.self) {
            guard let whole = Int64(exactly: number.rounded(.down)) else {
                throw CommandError(status: EX_DATAERR, message: "now is out of range")
            }
            seconds = whole
        } else {
            seconds = try Self.seconds(try container.decode(String.self))
        }
    }

    /// The time in a text, in seconds since 1970.
    static func seconds(_ text: String) throws -> Int64 {
        if let number = Int64(text) { return number }
        guard let date = try? Date(text, strategy: .iso8601) else {
            throw CommandError.usage(
                "\"\(text)\" is not a valid time: give seconds since 1970, or as in 2026-11-21T06:49:30Z"
            )
        }
        return Int64(date.timeIntervalSince1970)
    }
}

/// An SMTP client's address as an argument.
enum ClientAddress {
    /// Throws if the text is neither an IPv4 nor an IPv6 address. Nil and
    /// an empty text are allowed.
    static func check(_ text: String?) throws {
        guard let text, !text.isEmpty, IPAddress(text) == nil else { return }
        throw CommandError.usage("\"\(text)\" is not a valid IP address")
    }
}
