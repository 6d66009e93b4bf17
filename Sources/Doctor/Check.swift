// One check: its result in a sentence, and how to fix a problem.

import Support

/// The outcome of one check.
package struct Check: Encodable, Sendable, Hashable {
    /// In order, the worst last.
    package enum Verdict: String, Encodable, Sendable, Hashable, CaseIterable, Comparable {
        case ok, warning, broken

        package static func < (left: Verdict, right: Verdict) -> Bool {
            (allCases.firstIndex(of: left) ?? 0) < (allCases.firstIndex(of: right) ?? 0)
        }
    }

    package let name: CheckName
    package let verdict: Verdict
    /// The result. Contains no inbox.
    package let sentence: String
    /// What to do; nil if there is nothing to fix.
    package let remedy: Remedy?
    /// Whether the DNS did not answer, so that the result is unknown.
    package let isUnanswered: Bool

    private init(
        _ name: CheckName, _ verdict: Verdict, _ sentence: String, _ remedy: Remedy?,
        isUnanswered: Bool = false
    ) {
        self.isUnanswered = isUnanswered
        self.name = name
        self.verdict = verdict
        self.sentence = sentence
        self.remedy = remedy
    }

    package static func ok(_ name: CheckName, _ sentence: String) -> Check {
        Check(name, .ok, sentence, nil)
    }
    package static func warning(_ name: CheckName, _ sentence: String, remedy: Remedy) -> Check {
        Check(name, .warning, sentence, remedy)
    }
    package static func broken(_ name: CheckName, _ sentence: String, remedy: Remedy) -> Check {
        Check(name, .broken, sentence, remedy)
    }
    /// A warning: the DNS gave no answer.
    package static func unanswered(_ name: CheckName, _ sentence: String) -> Check {
        Check(name, .warning, sentence, "try again later", isUnanswered: true)
    }

    // For kinds of which there is only one check.
    package static func ok(_ kind: CheckKind, _ sentence: String) -> Check {
        ok(kind.alone, sentence)
    }
    package static func warning(_ kind: CheckKind, _ sentence: String, remedy: Remedy) -> Check {
        warning(kind.alone, sentence, remedy: remedy)
    }
    package static func broken(_ kind: CheckKind, _ sentence: String, remedy: Remedy) -> Check {
        broken(kind.alone, sentence, remedy: remedy)
    }
}

extension Check {
    /// This check, with options added to the commands of its remedy.
    package func with(_ options: [String]) -> Check {
        Check(name, verdict, sentence, remedy?.with(options), isUnanswered: isUnanswered)
    }

    private enum CodingKeys: String, CodingKey { case name, verdict, sentence, remedy, commands }

    package func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(name, forKey: .name)
        try container.encode(verdict, forKey: .verdict)
        try container.encode(sentence, forKey: .sentence)
        try container.encodeIfPresent(remedy?.text, forKey: .remedy)
        try container.encodeIfPresent(remedy?.argumentLists, forKey: .commands)
    }
}

extension [Check] {
    /// The worst verdict; ok if there is none.
    package var worst: Check.Verdict { map(\.verdict).max() ?? .ok }
}
