// Why a message could not be handed to the mail server. Says where and with which code; never what the server wrote, which may
// repeat an address.

/// How far the dialogue had come.
package enum SubmissionStage: String, Sendable, Hashable {
    case connection, greeting, ehlo = "EHLO", tls = "TLS", authentication = "AUTH", mail = "MAIL", recipient = "RCPT", data =
        "DATA", message = "end of data"
}

/// It may work later: no one listens, no answer in time, 4xx.
package struct TemporarySubmissionError: Error, Sendable, Hashable, CustomStringConvertible {
    package let stage: SubmissionStage
    /// Holds no address.
    package let detail: String

    package var description: String { "the mail server cannot accept a message just now (\(stage.rawValue)): \(detail)" }
}

/// It will not work as it is: 5xx, or an address that the server has no way to carry.
package struct PermanentSubmissionError: Error, Sendable, Hashable, CustomStringConvertible {
    package let stage: SubmissionStage
    /// Holds no address.
    package let detail: String

    package var description: String { "the mail server does not accept this message (\(stage.rawValue)): \(detail)" }
}

/// Either kind, as the dialogue throws it.
package enum SubmissionFailure: Error, Sendable, Hashable, CustomStringConvertible {
    case temporary(TemporarySubmissionError)
    case permanent(PermanentSubmissionError)

    static func temporary(_ stage: SubmissionStage, _ detail: String) -> SubmissionFailure {
        .temporary(TemporarySubmissionError(stage: stage, detail: detail))
    }

    static func permanent(_ stage: SubmissionStage, _ detail: String) -> SubmissionFailure {
        .permanent(PermanentSubmissionError(stage: stage, detail: detail))
    }

    package var description: String {
        switch self {
        case .temporary(let error): error.description
        case .permanent(let error): error.description
        }
    }
}
