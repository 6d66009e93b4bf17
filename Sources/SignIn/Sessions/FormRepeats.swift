// A form that the same browser sends twice within ten seconds, for example by a double click. The
// store keeps the outcome of the first form, never its response. The second form gets the same
// outcome.

import Accounts
import Database
import MailCrypto
import Support

/// The outcome of a form.
package enum FormOutcome: Sendable, Hashable {
    /// The form led to another page of the user: its path, and the notice on that page.
    case led(to: String, telling: String?)
    /// The form was carried out in another way.
    case done
    /// The form was refused, and nothing changed.
    case refused

    fileprivate var stored: String {
        switch self {
        case .led(let path, let telling): "led \(path) \(telling ?? "")"
        case .done: "done"
        case .refused: "refused"
        }
    }

    fileprivate init?(stored: String) {
        let parts = stored.split(separator: " ", omittingEmptySubsequences: false)
        switch (parts.first, parts.count) {
        case ("led", 3):
            self = .led(to: String(parts[1]), telling: parts[2].isEmpty ? nil : String(parts[2]))
        case ("done", 1): self = .done
        case ("refused", 1): self = .refused
        default: return nil
        }
    }
}

/// Whether a form was sent before.
package enum FormTurn: Sendable, Hashable {
    case first
    /// Another request is answering the same form.
    case underWay
    case repeated(FormOutcome)
}

extension PortalRepository {
    /// Seconds within which the same form is a repetition.
    package static let repetition: Int64 = 10

    /// Names a form of a browser: the same cookie, path and octets.
    package func formMark(cookie: String, path: String, body: [UInt8]) -> [UInt8] {
        secrets.hash(.form, cookie, context: "\(path) \(Hex.encode(SHA256.hash(body)))")
    }

    /// Begins to answer a form. A caller that gets `first` must report the outcome with `endForm`.
    /// Only one of two hosts gets `first`.
    /// - Parameter now: seconds since 1970.
    package func beginForm(_ mark: [UInt8], now: Int64) throws(StoreFailure) -> FormTurn {
        try database.write(.relaxed) { connection throws(StoreFailure) in
            try connection.run(
                "DELETE FROM page_repeats WHERE began_at <= \(now - Self.repetition)")
            let isFirst = try connection.run(
                "INSERT INTO page_repeats (mark, began_at) VALUES (\(mark), \(now)) ON CONFLICT (mark) DO NOTHING"
            )
            guard isFirst == 0 else { return .first }
            return try turn(connection, mark) ?? .first
        }
    }

    /// The outcome of a form that another request answers.
    package func turn(of mark: [UInt8]) throws(StoreFailure) -> FormTurn {
        try database.read { connection throws(StoreFailure) in try turn(connection, mark) ?? .first
        }
    }

    private func turn(
        _ connection: any SQLQuerying, _ mark: [UInt8]
    ) throws(StoreFailure) -> FormTurn? {
        guard let row = try connection.row("SELECT outcome FROM page_repeats WHERE mark = \(mark)")
        else { return nil }
        let outcome: String? = try row["outcome"]
        return outcome.map { FormOutcome(stored: $0).map(FormTurn.repeated) ?? .first } ?? .underWay
    }

    /// Records the outcome of a form.
    /// - Parameter outcome: nil if the form failed: then it may be sent again at once.
    package func endForm(_ mark: [UInt8], _ outcome: FormOutcome?) throws(StoreFailure) {
        try database.write(.relaxed) { connection throws(StoreFailure) in
            if let outcome {
                try connection.run(
                    "UPDATE page_repeats SET outcome = \(outcome.stored) WHERE mark = \(mark)")
            } else {
                try connection.run("DELETE FROM page_repeats WHERE mark = \(mark)")
            }
        }
    }
}
