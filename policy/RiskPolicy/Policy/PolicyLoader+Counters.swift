// `counters:` of a policy, and the signals `velocity.NAME` that they define.

import CEL
import Support
import Yams

extension PolicyLoader {
    /// `counters: {network_signups: {key: context.network, window: 1h, events:
    /// [sign_up], distinct: account}}`.
    mutating func readCounters(_ node: Node) {
        guard let entries = reader.entries(node, "counters") else { return }
        guard entries.count <= PolicyFileLimits.maximumCounters else {
            return reader.report(node, "more than \(PolicyFileLimits.maximumCounters) counters")
        }
        for entry in entries {
            guard Self.isName(entry.key[...]) else {
                reader.report(entry.keyNode, "'\(entry.key)' cannot be the name of a counter")
                continue
            }
            // A faulty counter still declares its signal, so that there is one fault, not one for
            // each use.
            let counter = counter(entry.key, entry.value)
            let signal = SignalDeclaration(
                name: "velocity." + entry.key, type: .int, mayBeMissing: true,
                source: .counter(countsInboxes: counter?.readsInbox ?? false))
            parts.scope.declare(signal.name, signal.type)
            parts.signals.append(signal)
            if let counter { parts.counters.append(counter) }
        }
    }

    private func counter(_ name: String, _ node: Node) -> PolicyCounter? {
        guard
            let fields = reader.fields(
                node, "a counter", required: ["key", "window", "events"], optional: ["distinct"]),
            let keyNode = fields["key"], let windowNode = fields["window"],
            let eventsNode = fields["events"]
        else { return nil }
        let counted = (
            key: key(keyNode, "key"), window: window(windowNode),
            events: events(eventsNode, "events")
        )
        var distinct: PolicyCounter.Key?
        if let node = fields["distinct"] {
            distinct = key(node, "distinct")
            if distinct == nil { return nil }
            if distinct == counted.key {
                reader.report(
                    node, "'distinct' must not be the key itself: it would always count one")
            }
        }
        guard let key = counted.key, let window = counted.window, let events = counted.events,
            !events.isEmpty
        else { return nil }
        return PolicyCounter(
            name: name, key: key, window: window, events: events, distinct: distinct)
    }

    private func key(_ node: Node, _ what: String) -> PolicyCounter.Key? {
        guard let text = reader.text(node, what) else { return nil }
        guard text.hasPrefix("context.") else {
            let words = ["account", "inbox", "inbox_domain", "device"]
            return switch reader.word(node, what, among: words) {
            case "account": .account
            case "inbox": .inbox
            case "inbox_domain": .inboxDomain
            case "device": .device
            default: nil
            }
        }
        guard let signal = parts.signals.first(where: { $0.name == text }) else {
            reader.report(node, "'\(text)' is not declared under 'signals'")
            return nil
        }
        if case .list = signal.type {
            reader.report(node, "'\(text)' is a list: a counter cannot count by it")
            return nil
        }
        return .context(String(text.dropFirst("context.".count)))
    }

    /// `90s`, `10m`, `1h`, `30d`, in seconds.
    private func window(_ node: Node) -> Int64? {
        guard let text = reader.text(node, "window") else { return nil }
        let units: [Character: Int64] = ["s": 1, "m": 60, "h": 3_600, "d": 86_400]
        let digits = text.dropLast()
        guard let factor = text.last.flatMap({ units[$0] }), digits.utf8.allSatisfy(\.isASCIIDigit),
            digits.utf8.count <= 7,
            let number = Int64(digits), PolicyCounter.windows.contains(number * factor)
        else {
            reader.report(node, "a window is 1m to 30d: a number followed by s, m, h or d")
            return nil
        }
        return number * factor
    }
}
