// The lenient reading of address fields, candidates in damaged ones, and writing.
import InternetMessage
import TestSupport
import Testing

struct AddressListTests {
    /// name|address pairs, groups as `name:[…]`.
    private func show(_ list: AddressList) -> String {
        func show(_ mailbox: Mailbox) -> String {
            "\(mailbox.displayName ?? "")|\(mailbox.addrSpec)"
        }
        return list.addresses.map { address in
            switch address {
            case .mailbox(let mailbox): show(mailbox)
            case .group(let name, let members):
                "\(name):[\(members.map(show).joined(separator: " "))]"
            }
        }.joined(separator: " ")
    }

    @Test func addressList_vectors_returnMailboxesAndDefects() throws {
        let lines = try TestData.vectors("addresses/lists.txt")
        for line in lines {
            let fields = line.split(separator: "\t", omittingEmptySubsequences: false)
            try #require(fields.count == 3, "\(line)")
            let list = AddressList.parse(TestData.unescaped(fields[0]))
            #expect(
                show(list) == String(decoding: TestData.unescaped(fields[1]), as: UTF8.self),
                "\(line)")
            #expect(
                list.defects.map { "\($0)" }.sorted().joined(separator: " ") == fields[2], "\(line)"
            )
        }
        print("addresses: \(lines.count) lists")
    }

    @Test func addressList_ranges_pointIntoRawValue() {
        let field = HeaderField(bytes: "To: A <a@b>,\r\n \"x\" <@r:c@d> (z), e@f".octets)
        let mailboxes = AddressList.parse(field.rawValue).mailboxes
        #expect(
            mailboxes.map { String(decoding: field.bytes[$0.range], as: UTF8.self) } == [
                "A <a@b>", "\"x\" <@r:c@d> (z)", "e@f",
            ])
        #expect(
            mailboxes.map { String(decoding: field.bytes[$0.addrSpecRange], as: UTF8.self) } == [
                "a@b", "c@d", "e@f",
            ])
        #expect(mailboxes[1].comment == "z")
    }

    struct ParserCase: Decodable {
        struct Entry: Decodable {
            var name: String?
            var address: String?
        }
        struct Group: Decodable {
            var name: String?
            var addresses: [Entry]
        }
        struct Expected: Decodable {
            var List: [Entry]?
            var Group: [Group]?
        }
        var header: String
        var expected: Expected
    }

    /// Cases in which that library keeps text that is not an address (URIs, routes, white space),
    /// takes comments into names, or stops at a line break.
    private static let differing: [String] = [
        "<http", "<mailto", "<ftp", "(Use this", "NO (", "Pete(", "A Group(Some", "(Empty list)",
        "<@node", "machine(comment)",
        "test@test.com\n",
        "Name (comment)", "<a@b.com> =?utf-8", "=?ISO-8859-1?Q =?", "Nathaniel",
    ]

    @Test(.enabled(if: TestData.conformance != nil, TestData.skipReason))
    func addressList_publicCases_agreeWithMailParser() throws {
        let cases = try TestData.json("address/mail-parser/address.json", as: [ParserCase].self)
        try #require(!cases.isEmpty)
        var agreed = 0
        for test in cases {
            var header = Array(test.header.utf8)[...]
            while header.last == 0x0A || header.last == 0x0D { header.removeLast() }
            let entries = test.expected.List ?? (test.expected.Group ?? []).flatMap(\.addresses)
            let list = AddressList.parse(header)
            let read = list.mailboxes.map { "\($0.displayName ?? $0.comment ?? "")|\($0.addrSpec)" }
            if read == entries.map({ "\($0.name ?? "")|\($0.address ?? "")" }) {
                agreed += 1
            } else {
                #expect(
                    Self.differing.contains { test.header.contains($0) },
                    "\(test.header.debugDescription): \(read)")
                print("mail-parser differs:", test.header.debugDescription, read)
            }
        }
        print("mail-parser: \(agreed) of \(cases.count) address lists")
    }

    @Test(arguments: [
        ("a@good <x@evil>", ["a@good", "x@evil"]),
        ("\"a@good\" <x@evil>", ["a@good", "x@evil"]),
        ("(c@d) <a@b", ["a@b", "c@d"]),
        ("\"unterminated <a@b>, c@d", ["a@b", "c@d"]),
        ("a(x)@(y)b . c", ["a@b.c"]),
        ("\"john doe\"@x", ["\"john doe\"@x"]),
        ("a\\@b", ["a@b"]),
        ("=?utf-8?q?a=40?= =?utf-8?q?b=2Ec?=", ["a@b.c"]),
        ("=?utf-8?b?PGFAYj4=?= <c@d>", ["a@b", "c@d"]),
        ("x=?utf-8?q?a=40b?=y", ["a@b", "xa@by"]),
        ("<http://x/?q=e@f>", ["//x/?q=e@f", "e@f"]),
        ("a＠b", ["a@b"]),
        ("a@b@c", ["a@b", "b@c"]),
        ("[x] a@[1.2.3.4]", ["a@[1.2.3.4]"]),
        ("G: a@b; H: c@d;", ["a@b", "c@d"]),
        ("a@b\r\n.c", ["a@b.c"]),
        ("<@r.x:a@b>", ["a@b"]),
    ])
    func candidates_damagedValue_includeEveryAddress(_ value: String, _ expected: [String]) {
        let found = Set(AddressCandidates.find(in: value).map(\.addrSpec.wireForm))
        for address in expected { #expect(found.contains(address), "\(value): \(found)") }
    }

    @Test(arguments: [
        ("John Doe", "John Doe"), ("John Q. Public", "\"John Q. Public\""),
        ("Doe, John", "\"Doe, John\""),
        ("a\"b\\c", "\"a\\\"b\\\\c\""),
        ("", ""), ("  ", ""), ("a@b", "\"a@b\""), ("Jürgen", "=?utf-8?q?J=C3=BCrgen?="),
        ("=?utf-8?q?x?=", "=?utf-8?b?PT91dGYtOD9xP3g/PQ==?="),
        ("a\r\nBcc: x", "\"a  Bcc: x\""), ("ハロー", "=?utf-8?b?44OP44Ot44O8?="), ("a  b", "\"a  b\""),
    ])
    func phrase_displayName_isQuotedOrEncoded(_ name: String, _ expected: String) {
        #expect(Mailbox.phrase(name) == expected)
    }

    @Test func mailbox_writtenIntoField_isReadBack() {
        var random = SeededGenerator(seed: 11)
        let alphabet = Array("abc .,;:<>@\"\\()[]=?_äß漢字😀é'-")
        for _ in 0..<1500 {
            let count = Int.random(in: 1...60, using: &random)
            var name = String(
                (0..<count).map { _ in alphabet[Int.random(in: 0..<alphabet.count, using: &random)]
                })
            name = name.split(separator: " ").joined(separator: " ")
            let mailbox = Mailbox(
                displayName: name, addrSpec: AddrSpec(localPart: "a", domain: "b.example"))
            let field = HeaderField.addresses("To", [mailbox, mailbox])
            #expect(field.controls.isEmpty)
            let list = AddressList.parse(field.rawValue)
            #expect(list.mailboxes.map { $0.displayName ?? "" } == [name, name], "\(field)")
            #expect(list.isLegal && list.mailboxes.allSatisfy { $0.addrSpec == mailbox.addrSpec })
            #expect(
                String(decoding: field.bytes, as: UTF8.self).utf8.split(separator: 10).allSatisfy {
                    $0.count <= 200
                })
        }
    }

    @Test func addressList_groups_areWrittenAndReadBack() {
        let member = Mailbox(displayName: "A", addrSpec: AddrSpec(localPart: "a", domain: "b"))
        let list = AddressList(addresses: [
            .group(name: "My: group", [member]), .group(name: "empty", []), .mailbox(member),
        ])
        #expect(list.serialized == "\"My: group\": A <a@b>;, empty:;, A <a@b>")
        #expect(AddressList.parse(list.serialized).mailboxes.count == 2)
        #expect(AddressList.parse(list.serialized).defects.isEmpty)
    }
}
