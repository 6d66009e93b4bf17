// Live lists that are not the store's: those of a test file, and made-up ones for generated inputs.

import CEL
import Yams

/// Lists whose entries a test file gives.
package struct FixedLiveLists: LiveLists {
    private var entries: [String: LiveListEntries] = [:]

    /// Every list empty.
    package init() {}

    /// Gives a list its entries; false for one that the kind cannot hold.
    package mutating func add(_ entry: String, to list: LiveListName) -> Bool {
        guard let normal = LiveListEntries.normal(entry, list.kind) else { return false }
        entries[list.name, default: LiveListEntries(list.kind)].change(adding: CollectionOfOne(normal), removing: [String]())
        return true
    }

    package func contains(_ text: String, in list: LiveListName) -> Bool {
        guard let entries = entries[list.name], entries.kind == list.kind else { return false }
        return entries.contains(list.kind == .personal ? LiveListEntries.personal(text) : text)
    }
}

/// Lists of which each text is in or not, by chance: what a policy guarantees must hold whatever lists say.
struct GeneratedLiveLists: LiveLists {
    let seed: UInt64

    func contains(_ text: String, in list: LiveListName) -> Bool {
        // FNV-1a: the same for a seed on every machine.
        var hash = 0xCBF2_9CE4_8422_2325 ^ seed
        for octet in list.name.utf8 { hash = (hash ^ UInt64(octet)) &* 0x100_0000_01B3 }
        hash = (hash ^ 0xFF) &* 0x100_0000_01B3
        for octet in text.utf8 { hash = (hash ^ UInt64(octet)) &* 0x100_0000_01B3 }
        return (hash >> 32) & 1 == 1
    }
}

extension PolicyTestReader {
    /// `lists:` of a test file: what live lists hold in its tests. Those that it does not name are empty.
    func lists(_ node: Node?) -> FixedLiveLists {
        var lists = FixedLiveLists()
        guard let node else { return lists }
        for entry in reader.entries(node, "lists") ?? [] {
            guard let list = policy.scope.liveLists["lists." + entry.key] else {
                let names = policy.liveLists.map(\.name)
                reader.report(
                    entry.keyNode, "the policy declares no live list '\(entry.key)'\(suggestion(for: entry.key, among: names))")
                continue
            }
            for element in reader.list(entry.value, "a list") ?? [] {
                guard let text = reader.text(element, "an entry of a list"), !lists.add(text, to: list) else { continue }
                reader.report(element, "'\(text)' cannot be an entry of a list of kind \(list.kind.rawValue)")
            }
        }
        return lists
    }
}
