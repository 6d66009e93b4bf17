// postern delivery tags.

import Foundation
import TestSupport
import Testing

@Suite(.blocking) struct DeliveryTagsTests {
    @Test func deliveryTags_listedAndAskedFor_nameTheTeam() throws {
        let runner = try CommandRunner.initialised()
        for team in ["juice", "shop"] { try runner.succeed("team", "add", team, "--name", team) }
        func rows(_ arguments: String...) throws -> [[String: String]] {
            let result = try runner.run(["delivery", "tags"] + arguments + ["--json"])
            try #require(result.status == 0, "\(result.errors)")
            return try JSONDecoder().decode(
                [[String: String]].self, from: Data(result.output.utf8))
        }
        let listed = try rows()
        #expect(listed.filter { $0["part"] == "team" }.map { $0["value"] } == ["juice", "shop"])
        #expect(listed.filter { $0["part"] == "purpose" }.count == 3)
        #expect(Set(listed.map { $0["tag"] }).count == listed.count)
        let other = try rows("--provider", "outlook.com")
        let tag = try #require(other.first { $0["value"] == "shop" }?["tag"])
        #expect(!listed.contains { $0["tag"] == tag })
        // A tag is found at whatever provider.
        #expect(
            try rows(tag) == [
                ["tag": tag, "part": "team", "value": "shop", "provider": "outlook.com"]
            ])
        try runner.fail(
            "delivery", "tags", "aaaaaaaaaaaa", status: 65, saying: "no part of Feedback-ID")
        try runner.fail(
            "delivery", "tags", "--provider", "small.example", status: 64, saying: "gmail.com")
    }
}
