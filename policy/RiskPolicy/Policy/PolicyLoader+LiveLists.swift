// `live_lists:` of a policy: the lists of the installation and of its teams that it reads, and
// their kinds.

import CEL
import Yams

extension PolicyLoader {
    /// `live_lists: {bad_networks: range, own: {kind: personal, of: team}}`.
    mutating func readLiveLists(_ node: Node) {
        guard let entries = reader.entries(node, "live_lists") else { return }
        guard entries.count <= PolicyFileLimits.maximumLiveLists else {
            return reader.report(node, "more than \(PolicyFileLimits.maximumLiveLists) live lists")
        }
        for entry in entries {
            guard Self.isName(entry.key[...]) else {
                reader.report(entry.keyNode, "'\(entry.key)' cannot be the name of a list")
                continue
            }
            var (kindNode, isTeams) = (entry.value, false)
            if case .mapping = entry.value {
                guard
                    let fields = reader.fields(
                        entry.value, "a live list", required: ["kind"], optional: ["of"]),
                    let kind = fields["kind"]
                else { continue }
                kindNode = kind
                if let of = fields["of"] {
                    isTeams = reader.word(of, "of", among: ["installation", "team"]) == "team"
                }
            }
            let words = LiveListKind.allCases.map(\.rawValue)
            guard
                let kind = reader.word(kindNode, "the kind of a live list", among: words).flatMap(
                    LiveListKind.init)
            else {
                continue
            }
            parts.scope.liveLists["lists." + entry.key] = LiveListName(
                entry.key, kind, isTeams: isTeams)
        }
    }
}

extension PolicyRefusal {
    /// The refusal of a policy that cannot be used in this installation, with one message for each
    /// reason.
    package init(_ faults: [String], file: String) {
        self.init(
            diagnostics: faults.map {
                PolicyDiagnostic(
                    file: file, position: SourcePosition(line: 1, column: 1), message: $0,
                    excerpt: "")
            })
    }
}
