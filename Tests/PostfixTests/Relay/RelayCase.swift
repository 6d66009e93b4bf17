// A .testcase of a whole relay: sets it up as the case's sections require, and plays it.

import Foundation
import PostfixHarness
import RelayHarness

/// A program that a case needs in addition to Postfix and Postern, on the same machine.
protocol RelayNeighbour {
    /// The values of `{NAME}` in the case; read before any part of the relay is started.
    var variables: [String: String] { get }
    /// Starts it next to a running relay, and makes the settings that Postfix needs for it.
    func start(beside fixture: RelayFixture) throws
    /// Ends it.
    func stop()
    /// Its output so far, for the message of a failed test.
    var log: String { get }
    /// The differences from the case's own sections, after Postfix has finished.
    func failures(_ outline: TestCase) -> [String]
}

extension RelayNeighbour {
    func failures(_ outline: TestCase) -> [String] { [] }
}

enum RelayCase {
    /// Runs a file.
    /// - Returns: the differences from the case, with the logs; nil if there are none.
    static func run(
        _ name: String, in folder: String, neighbours: [any RelayNeighbour] = [],
        change: (inout RelayFixture.Options) throws -> Void = { _ in }
    ) throws -> String? {
        defer { for neighbour in neighbours { neighbour.stop() } }
        var variables = neighbours.reduce(into: [:]) { $0.merge($1.variables) { $1 } }
        let text = try String(contentsOfFile: "\(folder)/\(name)", encoding: .utf8)
        let outline = try TestCase(name: name, text: filled(text, variables), folder: folder)
        var options = RelayFixtures.options {
            if neighbours.isEmpty { $0.postfix = outline.settings }
        }
        try change(&options)
        if let zone = outline.sections["dns"] { options.zone = zone.joined(separator: "\n") }
        for line in outline.sections["settings"] ?? [] {
            let parts = line.split(separator: "=", maxSplits: 1).map {
                $0.trimmingCharacters(in: .whitespaces)
            }
            options.settings[parts[0]] = parts.count > 1 ? parts[1] : ""
        }
        let fixture = try RelayFixture(options)
        defer { fixture.stop() }
        fixture.sink.set(outline.behaviour)
        variables["postern"] = fixture.socket
        for line in outline.sections["postern"] ?? [] {
            try perform(filled(line, variables), on: fixture, into: &variables)
        }
        for neighbour in neighbours { try neighbour.start(beside: fixture) }
        let testCase = try TestCase(name: name, text: filled(text, variables), folder: folder)
        // After the settings of the neighbours, so that a case can show a fault without one of
        // them.
        if !neighbours.isEmpty, !testCase.settings.isEmpty {
            try fixture.postfix.set(testCase.settings)
        }
        let failures =
            try testCase.run(postfix: fixture.postfix, sink: fixture.sink)
            + neighbours.flatMap { $0.failures(testCase) }
        guard !failures.isEmpty else { return nil }
        let logs =
            [fixture.postfix.logTail, (try? fixture.process.output) ?? ""] + neighbours.map(\.log)
        return "\(testCase.description)\n\((failures + logs).joined(separator: "\n"))"
    }

    private static func filled(_ text: String, _ variables: [String: String]) -> String {
        variables.reduce(text) { $0.replacingOccurrences(of: "{\($1.key)}", with: $1.value) }
    }

    /// A command of postern, or `NAME = command` to keep its output. Or `NAME = reverse
    /// RELAY-ADDRESS AUTHOR`: the address under which the user sees the author.
    private static func perform(
        _ line: String, on fixture: RelayFixture, into variables: inout [String: String]
    ) throws {
        let words = line.split(separator: " ").map(String.init)
        guard words.count > 2, words[1] == "=" else {
            try fixture.run(words)
            return
        }
        if words[2] == "reverse", words.count == 5 {
            variables[words[0]] = try fixture.reverseAddress(of: words[4], for: words[3])
        } else {
            variables[words[0]] = try fixture.run(Array(words[2...])).trimmingCharacters(
                in: .whitespacesAndNewlines)
        }
    }
}
