// The reason why a message could not be handed to the mail server. States the stage and the code,
// but never the server's text, which may repeat an address.

/// The stage that the dialogue had reached.
package enum SubmissionStage: String, Sendable, Hashable {
    case connection, greeting, ehlo = "EHLO", tls = "TLS", authentication = "AUTH", mail = "MAIL",
        recipient = "RCPT", data =
        "DATA", message = "end of data"
}

/// A retry may succeed: no listener, no answer in time, 4xx.
package struct TemporarySubmissionError: Error, Sendable, Hashable, CustomStringConvertible {
    package let stage: SubmissionStage
    /// Contains no address.
    package let detail: String

    package var description: String {
        "the mail server cannot accept a message just now (\(stage.rawValue)): \(detail)"
    }
}

/// A retry of the same message will fail: 5xx, or an address that the server does not support.
package struct PermanentSubmissionError: Error, Sendable, Hashable, CustomStringConvertible {
    package let stage: SubmissionStage
    /// Contains no address.
    package let detail: String

    package var description: String {
        "the mail server does not accept this message (\(stage.rawValue)): \(detail)"
    }
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
