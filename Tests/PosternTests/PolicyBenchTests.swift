// postern policy bench as a command, and the results that Postern's own policies must reach in it.

import Concurrency
import Foundation
import PostfixHarness
import TestSupport
import Testing

@Suite(.blocking) struct PolicyBenchTests {
    private struct Report: Decodable {
        struct Asked: Decodable {
            let questions: Int
            let asked: Int
            var share: Double { Double(asked) / Double(max(1, questions)) }
        }
        struct Row: Decodable {
            let attack: String?
            let people: String?
            let signUps: Asked
            let signIns: Asked
            let actions: Asked
            let from20th: Asked?

            enum CodingKeys: String, CodingKey {
                case attack, people, actions
                case signUps = "sign_ups"
                case signIns = "sign_ins"
                case from20th = "from_20th"
            }
        }
        let policy: String
        let attacks: [Row]
        let people: [Row]
        let area: Double

        enum CodingKeys: String, CodingKey {
            case policy, attacks, people
            case area = "area_sign_ups"
        }
    }

    /// A store with keys must not stay in the folder for temporary files.
    @Test(arguments: [SIGTERM, SIGINT, SIGHUP]) func bench_endedByASignal_leavesNothing(
        signal: Int32
    ) throws {
        let runner = try CommandRunner()
        // Not Foundation's: this process may ignore SIGHUP while a test serves in
        // it, and its children would too.
        let null = try FileHandle(forUpdating: URL(fileURLWithPath: "/dev/null"))
        let process = try SystemProcess(
            CommandRunner.executable.path, ["policy", "bench", "default", "--people", "20000"],
            environment: ["PATH": "/usr/bin:/bin", "TMPDIR": runner.folder.path],
            descriptors: (null.fileDescriptor, null.fileDescriptor, null.fileDescriptor))
        func left() throws -> [String] {
            try FileManager.default.contentsOfDirectory(atPath: runner.folder.path).filter {
                $0.hasPrefix("postern-fraud-")
            }
        }
        try wait("its folder", atMost: 120) { try !left().isEmpty }
        kill(process.identifier, signal)
        #expect(process.wait() == 128 + signal)
        #expect(try left() == [])
    }

    @Test func bench_defaultPolicies_askFarmsAndFewPeople() throws {
        let runner = try CommandRunner()
        let page = runner.folder.appendingPathComponent("bench.html")
        let result = try runner.run([
            "policy", "bench", "default", "--people", "400", "--farm", "80", "--seed", "7",
            "--html", page.path, "--json",
        ])
        #expect(result.status == 0, "\(result.errors)")
        let report = try JSONDecoder().decode(Report.self, from: Data(result.output.utf8))
        let farms = report.attacks.filter { $0.attack?.hasPrefix("farm") == true }
        #expect(farms.count == 3)
        for farm in farms {
            #expect(
                (farm.from20th?.share ?? 0) >= 0.95 && (farm.from20th?.questions ?? 0) > 0,
                "\(farm)")
        }
        let all = try #require(report.people.last)
        #expect(all.people == "all" && all.signUps.questions > 300)
        #expect(all.signUps.share <= 0.03 && all.signIns.share <= 0.005, "\(all)")
        #expect(report.attacks.first { $0.attack == "bought aged accounts" }?.actions.share == 1)
        #expect(report.area > 0.8)
        let html = try String(contentsOf: page, encoding: .utf8)
        #expect(
            html.contains("Sign-ups: attacks against people")
                && html.contains("<polyline class=\"line after\""))
        #expect(!html.contains("<script") && !html.contains("http"))
    }

    @Test func bench_invalidArguments_isRefused() throws {
        let runner = try CommandRunner()
        try runner.fail(
            "policy", "bench", "default", "--people", "0", status: 64,
            saying: "--people must be 1 to 100000")
        try runner.fail(
            "policy", "bench", "default", "--status", "default", status: 64,
            saying: "give a status policy")
        try runner.fail(
            "policy", "bench", "default", "--html", "/no/such/folder/x", "--people", "1", "--farm",
            "1", status: 73, saying: "x")
    }
}
