// The served description against the running service, by a program that knows only the description.

import Accounts
import Foundation
import PostfixHarness
import TestSupport
import Testing

@Suite(.blocking) struct SchemathesisTests {
    /// `make test-tools` installs it.
    private static var tool: String? {
        let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
            .appendingPathComponent(
                "../../../.build/test-tools/bin")
        let path = root.appendingPathComponent("schemathesis").standardizedFileURL.path
        return FileManager.default.isExecutableFile(atPath: path) ? path : nil
    }

    /// Test cases, over all operations and both kinds of key.
    private static let wanted = 2000

    @Test(
        .enabled(if: tool != nil, "skipped: schemathesis is not installed (make test-tools)"),
        arguments: ["operator", "team"])
    func openAPI_requestsBySchemathesis_areAnsweredAsDescribed(_ owner: String) throws {
        let tool = try #require(Self.tool)
        // Accepts the codes for addresses of teams.
        let sink = try SMTPSink()
        defer { sink.stop() }
        let service = try LiveService([
            "http.public_url": "https://id.example", "mail.submission": "127.0.0.1:\(sink.port)",
        ])
        for team in ["juice", "soda"] { try service.run("team", "add", team, "--name", team) }
        try service.run("source", "add", "juice", "juice.example")
        try service.run("user", "add", "jane", "--inbox", "jane.private@home.example", "--verified")
        try service.run("address", "issue", "juice", "jane")
        let scopes = Scope.available(to: owner == "team" ? .team : .operator).map(\.rawValue)
            .joined(separator: ",")
        let key = try service.key(owner == "team" ? "juice" : "--operator", "--scope", scopes)
        let settings = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
            .appendingPathComponent("schemathesis.toml")
            .path
        let process = try ManagedProcess(
            tool,
            [
                "--config-file", settings, "run", "http://127.0.0.1:\(service.port)/openapi.yaml",
                "--header",
                "Authorization: Bearer \(key)", "--checks",
                "not_a_server_error,status_code_conformance,content_type_conformance,response_headers_conformance,response_schema_conformance,"
                    + "negative_data_rejection,positive_data_acceptance",
                "--phases", "examples,coverage,fuzzing", "--max-examples", "25", "--seed",
                "20261121", "--no-shrink",
                "--continue-on-failure",
                "--suppress-health-check", "all", "--request-timeout", "120", "--workers", "1",
            ], directory: service.folder)
        let status = try process.waitForExit(seconds: 1800)
        let output = process.output
        #expect(status == 0, "\(output.suffix(12_000))")
        let cases =
            output.firstMatch(of: #/([0-9,]+) generated/#).flatMap {
                Int($0.1.replacing(",", with: ""))
            } ?? 0
        #expect(cases >= Self.wanted / 2, "only \(cases) cases were tried: \(output.suffix(2000))")
        #expect(!service.log.contains("status=500"))
    }
}
