// Domains of one provider: those that belong to one person, and those that are only hidden
// together.

import Foundation
import TestSupport
import Testing

@testable import InternetMessage

@Suite(.blocking) struct ProviderRulesTests {
    private static let families = ["proton.me", "icloud.com", "outlook.com"].map(
        ProviderRules.sisters)

    /// Lines of a list of domains in the default policy.
    private static func list(_ name: String) throws -> [String] {
        let file = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
            .appendingPathComponent(
                "../../policy/rules/domains/\(name).txt")
        return try String(contentsOf: file, encoding: .utf8).split(separator: "\n").map(String.init)
            .filter { !$0.hasPrefix("#") }
    }

    /// The policy knows exactly the domains of the families that it lists for these providers.
    @Test func sisters_areTheDomainsThatThePolicyLists() throws {
        let listed = try Self.list("providers")
        let named = listed.filter { domain in
            ["pm.me", "me.com", "mac.com", "msn.com"].contains(domain)
                || ["proton", "icloud", "outlook", "hotmail", "live"].contains {
                    domain.hasPrefix($0)
                }
        }
        #expect(named.count >= 20)
        for domain in named {
            #expect(Self.families.contains { $0.contains(domain) }, "\(domain) has no family")
            #expect(
                ProviderRules.sisters(of: domain).contains(domain)
                    && ProviderRules.sisters(of: domain).count > 1)
        }
        // The others are domains at which no one can get a new inbox.
        let others = Self.families.joined().filter { !listed.contains($0) }
        #expect(
            Set(others).isSubset(of: ["outlook.jp", "live.de", "live.it", "passport.com"]),
            "\(others)")
    }

    @Test func sisters_anyOtherDomain_isAlone() throws {
        for domain in try Self.list("providers")
        where !Self.families.contains(where: { $0.contains(domain) }) {
            #expect(ProviderRules.sisters(of: domain) == [domain])
        }
        #expect(ProviderRules.sisters(of: "home.example") == ["home.example"])
    }

    @Test(arguments: [
        ("martha77@proton.me", "Martha77+x@pm.me", true),
        ("martha77@protonmail.ch", "martha77@protonmail.com", true),
        ("maria@icloud.com", "maria@mac.com", true), ("maria@me.com", "maria@mac.com", true),
        ("maria@icloud.com", "mario@mac.com", false),
        ("maria@icloud.com", "maria@proton.me", false),
        ("jane@outlook.com", "jane@hotmail.com", false),
        ("jane@outlook.com", "jane@outlook.com", true),
        ("j.a.n.e@gmail.com", "jane@googlemail.com", true),
        ("jane@home.example", "jane@inbox.example", false),
    ])
    func areOnePersons_twoAddresses_followsProviderRules(
        _ one: String, _ other: String, _ expected: Bool
    ) throws {
        let addresses = try #require(
            AddrSpec(envelope: one).flatMap { one in AddrSpec(envelope: other).map { (one, $0) } })
        #expect(ProviderRules.standard.areOnePersons(addresses.0, addresses.1) == expected)
        #expect(ProviderRules.standard.areOnePersons(addresses.1, addresses.0) == expected)
    }

    /// The stored form of an inbox is used to find it.
    @Test func canonical_aSisterDomain_staysAsItIs() throws {
        for domain in Self.families.joined() {
            let address = AddrSpec(localPart: "jane", domain: domain)
            #expect(ProviderRules.standard.canonical(address) == address)
        }
    }
}
