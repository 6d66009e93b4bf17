// docs/EVENTS.md and docs/SHARED_SIGNALS.md must show every event as it is declared.

import Accounts
import TestSupport
import Testing

@Suite struct EventTypeTests {
    private static let endpoints = DocumentSection("events", by: "EventTypeTests", in: "EVENTS.md")
    private static let streams = DocumentSection(
        "events", by: "EventTypeTests", in: "SHARED_SIGNALS.md")

    /// `RISC account-purged` in place of the whole URI of a standard.
    private static func title(_ uri: String) -> String {
        let pieces = uri.split(separator: "/")
        guard let kind = pieces.firstIndex(of: "event-type"), kind > 0 else { return "`\(uri)`" }
        return "\(pieces[kind - 1].uppercased()) `\(pieces[kind + 1])`"
    }

    @Test func eventsDocument_typesOfEndpoints_areThoseDeclared() throws {
        let rows = EventType.allCases.compactMap { type in
            type.facts.endpoint.map { "| `\(type.rawValue)` | \($0.happened) | \($0.remedy) |\n" }
        }
        #expect(
            try Self.endpoints.holds(
                "| type | what happened | what to do |\n|---|---|---|\n" + rows.joined()))
    }

    @Test func sharedSignalsDocument_typesOfStreams_areThoseDeclared() throws {
        var texts: [(uri: String, text: String)] = []
        for facts in EventType.allCases.map(\.facts) {
            guard let text = facts.stream else { continue }
            if let known = texts.firstIndex(where: { $0.uri == facts.uri }) {
                texts[known].text += "; or \(text)"
            } else {
                texts.append((facts.uri, text))
            }
        }
        let rows = texts.map { "| \(Self.title($0.uri)) | \($0.text) |\n" }.joined()
        #expect(try Self.streams.holds("| event | what happened |\n|---|---|\n" + rows))
    }

    @Test func eventTypes_allOfThem_goSomewhere() {
        for facts in EventType.allCases.map(\.facts) where facts.stream == nil {
            #expect(facts.endpoint != nil)
        }
        #expect(
            !EventType.notifications.contains(.sourceStopped)
                && EventType.notifications.contains(.test))
        #expect(EventType.supportedURIs.count == 14)
    }
}
