// One check: its result in a sentence, and how to fix a problem.

/// The outcome of one check.
package struct Check: Encodable, Sendable, Hashable {
    /// Worst last.
    package enum Verdict: String, Encodable, Sendable, Hashable, CaseIterable, Comparable {
        case ok, warning, broken

        package static func < (left: Verdict, right: Verdict) -> Bool {
            (allCases.firstIndex(of: left) ?? 0) < (allCases.firstIndex(of: right) ?? 0)
        }
    }

    package let name: CheckName
    package let verdict: Verdict
    /// The result. Holds no inbox.
    package let sentence: String
    /// What to do; nil if there is nothing to fix.
    package let remedy: String?

    private init(_ name: CheckName, _ verdict: Verdict, _ sentence: String, _ remedy: String?) {
        self.name = name
        self.verdict = verdict
        self.sentence = sentence
        self.remedy = remedy
    }

    package static func ok(_ name: CheckName, _ sentence: String) -> Check { Check(name, .ok, sentence, nil) }
    package static func warning(_ name: CheckName, _ sentence: String, remedy: String) -> Check {
        Check(name, .warning, sentence, remedy)
    }
    package static func broken(_ name: CheckName, _ sentence: String, remedy: String) -> Check {
        Check(name, .broken, sentence, remedy)
    }

    // Of what there is one of.
    package static func ok(_ kind: CheckKind, _ sentence: String) -> Check { ok(kind.alone, sentence) }
    package static func warning(_ kind: CheckKind, _ sentence: String, remedy: String) -> Check {
        warning(kind.alone, sentence, remedy: remedy)
    }
    package static func broken(_ kind: CheckKind, _ sentence: String, remedy: String) -> Check {
        broken(kind.alone, sentence, remedy: remedy)
    }
}

extension [Check] {
    /// The worst verdict; ok if there is none.
    package var worst: Check.Verdict { map(\.verdict).max() ?? .ok }
}
