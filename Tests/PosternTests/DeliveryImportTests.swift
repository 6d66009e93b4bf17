// postern delivery import, and the reasons that delivery commands take.

import Foundation
import TestSupport
import Testing

@Suite(.blocking) struct DeliveryImportTests {
    /// An SMTP TLS report (RFC 8460) about a day.
    private static func report(_ day: String) -> String {
        """
        {"organization-name":"Company-X","date-range":{"start-datetime":"\(day)T00:00:00Z",
        "end-datetime":"\(day)T23:59:59Z"},"contact-info":"sts@company-x.example","report-id":"\(day)-1",
        "policies":[{"policy":{"policy-type":"sts","policy-domain":"relay.example"},
        "summary":{"total-successful-session-count":5326,"total-failure-session-count":303}}]}
        """
    }

    /// The reports come from strangers: one of them must not keep the others from being read.
    @Test func deliveryImport_oneFileUnusable_readsTheOthers() throws {
        let runner = try CommandRunner.initialised()
        func write(_ text: String, to name: String) throws -> String {
            let file = runner.folder.appending(path: name)
            try Data(text.utf8).write(to: file)
            return file.path
        }
        let large = try write(String(repeating: " ", count: 8_000_001), to: "a.json")
        let missing = runner.folder.appending(path: "b.json").path
        let broken = try write("{", to: "c.json")
        let future = try write(Self.report("2099-11-27"), to: "d.json")
        let good = try write(Self.report("2026-11-27"), to: "e.json")
        let result = try runner.run(
            ["delivery", "import", large, missing, broken, future, good, "--json"])
        #expect(result.status == 65)
        #expect(result.output.contains("\"new\""))
        let errors = result.errors
        for name in ["a.json", "b.json", "c.json", "d.json"] {
            #expect(errors.contains(name), "\(name)")
        }
        #expect(!errors.contains("e.json") && errors.contains("2099-11-27, which is not a day"))
        #expect(try runner.succeed("delivery", "import", good).contains(" 0 of them new"))
    }

    /// The audit, `delivery show` and `status` show it.
    @Test func reason_withAnAddress_isRefused() throws {
        let runner = try CommandRunner.initialised()
        try runner.succeed("team", "add", "juice", "--name", "juice")
        for reason in ["jane@home.example complained", "jane\u{FF20}home.example", "a\nb", ""] {
            for command in ["hold", "allow"] {
                try runner.fail(
                    "delivery", command, "juice", "google", "--until", "7d", "--reason", reason,
                    status: 64, saying: "without an email address")
            }
            try runner.fail(
                "user", "recover", "jane", "--reason", reason, status: 64,
                saying: "without an email address")
        }
        try runner.succeed(
            "delivery", "hold", "juice", "google", "--until", "never", "--reason", "asked twice")
        #expect(
            try runner.run(["status"]).output.contains(
                "mail of team juice to google is held (451) until it is lifted, as an administrator decided (asked twice)"
            ))
    }
}
