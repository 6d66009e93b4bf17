// Live lists that are not in the store: those of a test file, and random ones for generated inputs.

import CEL
import Yams

/// Lists whose entries come from a test file.
package struct FixedLiveLists: LiveLists {
    private var entries: [String: LiveListEntries] = [:]

    /// All lists empty.
    package init() {}

    /// Adds an entry to a list; returns false for an entry that the list's kind cannot contain.
    package mutating func add(_ entry: String, to list: LiveListName) -> Bool {
        guard let normal = LiveListEntries.normal(entry, list.kind) else { return false }
        entries[list.name, default: LiveListEntries(list.kind)].change(
            adding: CollectionOfOne(normal), removing: [String]())
        return true
    }

    package func contains(_ text: String, in list: LiveListName) -> Bool {
        guard let entries = entries[list.name], entries.kind == list.kind else { return false }
        return entries.contains(list.kind == .personal ? LiveListEntries.personal(text) : text)
    }
}

/// Lists that contain each text or not, at random: a guarantee must hold for all contents of lists.
struct GeneratedLiveLists: LiveLists {
    let seed: UInt64

    func contains(_ text: String, in list: LiveListName) -> Bool {
        // FNV-1a: for one seed, the same on every machine.
        var hash = 0xCBF2_9CE4_8422_2325 ^ seed
        for octet in list.name.utf8 { hash = (hash ^ UInt64(octet)) &* 0x100_0000_01B3 }
        hash = (hash ^ 0xFF) &* 0x100_0000_01B3
        for octet in text.utf8 { hash = (hash ^ UInt64(octet)) &* 0x100_0000_01B3 }
        return (hash >> 32) & 1 == 1
    }
}

extension PolicyTestReader {
    /// `lists:` of a test file: the content of live lists in its tests. Lists that are not named
    /// are empty.
    func lists(_ node: Node?) -> FixedLiveLists {
        var lists = FixedLiveLists()
        guard let node else { return lists }
        for entry in reader.entries(node, "lists") ?? [] {
            guard let list = policy.scope.liveLists["lists." + entry.key] else {
                let names = policy.liveLists.map(\.name)
                reader.report(
                    entry.keyNode,
                    "the policy declares no live list '\(entry.key)'\(suggestion(for: entry.key, among: names))"
                )
                continue
            }
            for element in reader.list(entry.value, "a list") ?? [] {
                guard let text = reader.text(element, "an entry of a list"),
                    !lists.add(text, to: list)
                else { continue }
                reader.report(
                    element, "'\(text)' cannot be an entry of a list of kind \(list.kind.rawValue)")
            }
        }
        return lists
    }
}
