// Addresses and ranges: the cases of Kubernetes' library, and ranges in lists.

import CEL
import Foundation
import TestSupport
import Testing

@Suite(.blocking) struct CELAddressTests {
    @Test(.enabled(if: Folders.hasConformance, Folders.skipped), arguments: ["ip": 38, "cidr": 32])
    func ipLibrary_kubernetesCases_giveTheirResults(library: String, count: Int) throws {
        let data = try Data(contentsOf: Folders.conformance.appending(path: "cel-net/ip-cidr.json"))
        let file = try #require(try JSONSerialization.jsonObject(with: data) as? [String: Any])
        let cases = try #require(file[library] as? [[String: Any]])
        #expect(cases.count == count)
        for json in cases {
            let name = "\(json["name"] ?? ""): \(json["expr"] ?? "")"
            let result = try #require(ExpressionCase(json: json)).evaluate(zones: .none)
            if json["runtimeError"] != nil {
                guard case .failure(.error) = result else {
                    Issue.record("\(name) is not an error of evaluation")
                    continue
                }
            } else if json["compileErrorsRegex"] != nil {
                guard case .failure(.fault) = result else {
                    Issue.record("\(name) is not refused")
                    continue
                }
            } else {
                let value = try result.get()
                switch json["result"] {
                case let typed as [String: String]:
                    #expect(value.typeName == typed["type"], "\(name)")
                    #expect(value.typedJSON?.values.first as? String == typed["value"], "\(name)")
                case let text as String: #expect(value.text == "\"\(text)\"", "\(name)")
                case let number as NSNumber where value.typeName == "int":
                    #expect(value.text == number.stringValue, "\(name)")
                case let bool as Bool: #expect(value.text == "\(bool)", "\(name)")
                default: Issue.record("\(name) has a result of an unknown kind")
                }
            }
        }
    }

    @Test(arguments: [
        "1.2.3", "1.2.3.4.5", "01.2.3.4", "1.2.3.256", "1.2.3.", ".1.2.3", "1..2.3", "1.2.3.4 ", "",
        ":", ":::", "::1::",
        "1:2:3:4:5:6:7",
        "1:2:3:4:5:6:7:8:9", "1:2:3:4:5:6:7::8", "12345::", "g::", "fe80::1%eth0", "1::2:",
        ":1::",
        "::1.2.3", "1:2:3:4:5:6:7:1.2.3.4", "1.2.3.4::",
    ])
    func address_invalid_isNil(text: String) {
        #expect(CELAddress(text) == nil)
    }

    @Test(arguments: [
        "::": "::", "::1": "::1", "1::": "1::", "2001:DB8:0:0:0::68": "2001:db8::68",
        "1:2:3:4:5:6:7:8": "1:2:3:4:5:6:7:8",
        "::1.2.3.4": "::102:304", "1:0:0:2:0:0:0:3": "1:0:0:2::3",
        "1:0:2:3:4:5:6:7": "1:0:2:3:4:5:6:7", "0.0.0.0": "0.0.0.0",
        "255.255.255.255": "255.255.255.255", "64:ff9b::192.0.2.33": "64:ff9b::c000:221",
        "::ffff:1.2.3.4": "1.2.3.4",
        "::FFFF:102:304": "1.2.3.4", "0:0:0:0:0:ffff:1.2.3.4": "1.2.3.4",
        "1:2:3:4:5:6::8": "1:2:3:4:5:6:0:8",
    ])
    func address_valid_hasOneCanonicalForm(text: String, canonical: String) {
        #expect(CELAddress(text)?.description == canonical)
        #expect(CELAddress(canonical)?.description == canonical)
    }

    @Test(arguments: [
        "1.2.3.4", "1.2.3.4/", "1.2.3.4/33", "::/129", "1.2.3.4/01", "1.2.3.4/-1", "1.2.3.4/ 1",
        "/8", "::ffff:1.2.3.4/95",
        "::ffff:1.2.3.4/129",
    ])
    func range_invalid_isNil(text: String) {
        #expect(CELNetwork(text) == nil)
    }

    @Test func range_otherFamily_containsNothing() throws {
        for text in [
            "cidr('::/0').containsIP('1.2.3.4')", "cidr('0.0.0.0/0').containsIP('::')",
            "cidr('::/0').containsCIDR('0.0.0.0/8')",
        ] {
            #expect(
                try ExpressionCase(expression: text, bindings: [:]).evaluate(zones: .none).get()
                    .text == "false")
        }
        #expect(
            try ExpressionCase(
                expression:
                    "cidr('::/0').containsIP('ffff::') && cidr('0.0.0.0/0').masked() == cidr('0.0.0.0/0')",
                bindings: [:]
            )
            .evaluate(zones: .none).get().text == "true")
    }

    /// A variable of this name does not change the meaning of its methods.
    @Test func isCanonical_ipIsAVariable_isNoFunction() {
        let bound = ExpressionCase(
            expression: "ip.isCanonical('::1')", bindings: ["ip": .string("::1")])
        guard case .failure(.fault) = bound.evaluate(zones: .none) else {
            Issue.record("a method that a string does not have was called")
            return
        }
    }

    // MARK: Lists

    private static let list = StringList(
        Set(
            [
                "198.51.100.0/24", "192.0.2.128/25", "192.0.2.0/25", "203.0.113.9", "2001:DB8::/32",
                "fe80::1", "0.0.0.0/32",
                "255.255.255.255",
                "office/24", "198.51.100.0/33",
            ].map(ExactString.init)))

    @Test(arguments: [
        "198.51.100.0/24", "198.51.100.0", "198.51.100.255", "198.51.100.64/26", "192.0.2.0/24",
        "203.0.113.9", "203.0.113.9/32",
        "::ffff:198.51.100.7", "::FFFF:c633:6407", "0:0:0:0:0:ffff:203.0.113.9",
        "::ffff:198.51.100.0/120",
        "2001:db8:ffff::1", "2001:db8:1::/48", "fe80:0::1", "0.0.0.0", "255.255.255.255",
        "office/24", "198.51.100.0/33",
    ])
    func list_valueWithinRanges_isContained(text: String) {
        #expect(Self.list.contains(text))
    }

    @Test(arguments: [
        "198.51.100.0/23", "198.51.99.255", "198.51.101.0", "192.0.3.0", "203.0.113.8",
        "203.0.113.9/31", "2001:db9::",
        "2001:db8::/31",
        "::198.51.100.7", "::ffff:198.51.101.7", "fe80::2", "0.0.0.1", "255.255.255.254", "office",
        "office/25", "",
        "198.51.100.7/",
    ])
    func list_valueOutsideRanges_isNotContained(text: String) {
        #expect(!Self.list.contains(text))
    }

    /// Enough for several buckets of the table, of both families, next to each other and far apart.
    @Test func list_manyRanges_matchesEachOfThem() {
        var state: UInt64 = 3
        func next(_ bound: UInt64) -> UInt64 {
            state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            return state >> 33 % bound
        }
        func address() -> String {
            switch next(3) {
            case 0: "192.0.\(next(8)).\(next(256))"
            case 1: "\(next(256)).\(next(256)).\(next(256)).\(next(256))"
            default: "2001:db8:\(String(next(16), radix: 16))::\(String(next(65_536), radix: 16))"
            }
        }
        let texts = (0..<600).map { _ in
            let text = address()
            return text + (text.contains(":") ? "/\(110 + next(19))" : "/\(20 + next(13))")
        }
        let list = StringList(Set(texts.map(ExactString.init)))
        let networks = texts.compactMap { CELNetwork($0) }
        #expect(networks.count == texts.count)
        for text in (0..<600).map({ _ in address() }) + [
            "0.0.0.0", "255.255.255.255", "::", "ffff::", "2001:db8:10::",
        ] {
            guard let address = CELAddress(text) else {
                Issue.record("\(text) is not an address")
                continue
            }
            let isWithin = networks.contains {
                $0.address.isIPv4 == address.isIPv4 && $0.bounds.contains(address.bits)
            }
            #expect(list.contains(text) == isWithin, "\(text)")
        }
    }

    /// Every address of a small network, against ranges that overlap, touch and
    /// nest, checked one by one.
    @Test func list_overlappingRanges_matchesEachOfThem() {
        var state: UInt64 = 1
        func next(_ bound: UInt64) -> UInt64 {
            state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            return state >> 33 % bound
        }
        for _ in 0..<50 {
            let texts = (0..<(1 + next(6))).map { _ in "192.0.2.\(next(256))/\(24 + next(9))" }
            let list = StringList(Set(texts.map(ExactString.init)))
            let networks = texts.compactMap { CELNetwork($0) }
            #expect(networks.count == texts.count)
            for last in 0..<256 {
                let bits: UInt128 = 0xC000_0200 + UInt128(last)
                #expect(
                    list.contains("192.0.2.\(last)")
                        == networks.contains { $0.bounds.contains(bits) }, "\(last) in \(texts)")
            }
        }
    }
}
