// Postern's edits of the team's message, as a file that bench-filter plays back.

import Foundation
import InternetMessage
import RelayCore

enum FixedEdits {
    /// The records of the modifications, in their order; see bench-filter's main.c.
    static func make(_ world: MailFixture) throws -> [UInt8] {
        let decision = try Stages.decide(world)
        guard decision.outcome == .relay else {
            throw BenchFailure("Postern does not forward the message: \(decision.reasons)")
        }
        var bytes: [UInt8] = []
        func record(_ kind: Character, _ number: Int, _ name: String, _ value: [UInt8]) {
            for part in [
                Array(String(kind).utf8), Array("\(number)".utf8), Array(name.utf8), value,
            ] { bytes += part + [0] }
        }
        // libmilter needs folds as LF alone.
        func value(_ raw: some Sequence<UInt8>) -> [UInt8] { raw.filter { $0 != 0x0D } }
        for modification in decision.modifications {
            switch modification {
            case .changeHeader(let name, let index, .some(let raw)):
                record("c", index, name, value(raw))
            case .changeHeader(let name, let index, nil): record("x", index, name, [])
            case .insertHeader(let position, let field):
                record("i", position, field.name, value(field.rawValue))
            case .changeSender(let path): record("f", 0, "", Array(path.utf8))
            case .addRecipient(let path): record("a", 0, "", Array(path.utf8))
            case .deleteRecipient(let path): record("d", 0, "", Array(path.utf8))
            case .replaceBody: throw BenchFailure("a forward replaced the body")
            }
        }
        return bytes
    }
}

struct BenchFailure: Error, CustomStringConvertible {
    let description: String
    init(_ description: String) { self.description = description }
}
