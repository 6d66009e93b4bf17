// The strict reading of From: one address, or the reason why not.
import InternetMessage
import Testing

struct AuthorAddressTests {
    @Test func authorAddress_vectors_areReadOrRefusedWithReason() throws {
        let lines = try TestData.vectors("author/values.txt") + TestData.vectors("author/forms.txt")
        for line in lines {
            let cut = try #require(line.lastIndex(of: "\t"))
            let value = TestData.unescaped(line[..<cut])
            let expected = String(line[line.index(after: cut)...])
            switch AuthorAddress.parse(value: value[...]) {
            case .success(let address):
                let wanted = AddrSpec(envelope: TestData.unescaped(expected))
                #expect(address == wanted, "\(line) gave \(address)")
            case .failure(let reason):
                #expect("!\(reason.rawValue)" == expected, "\(line)")
            }
        }
        print("author: \(lines.count) values")
    }

    /// A value accepted by the strict reader must give the same result, and nothing else, in the
    /// lenient reader and the candidate search.
    @Test func authorAddress_acceptedValue_agreesWithAddressList() throws {
        for line in try TestData.vectors("author/values.txt") + TestData.vectors("author/forms.txt")
        {
            let cut = try #require(line.lastIndex(of: "\t"))
            let value = TestData.unescaped(line[..<cut])
            guard case .success(let address) = AuthorAddress.parse(value: value[...]) else {
                continue
            }
            #expect(AddressList.parse(value).mailboxes.map(\.addrSpec) == [address], "\(line)")
            #expect(
                AddressCandidates.find(in: value[...]).map(\.addrSpec).contains(address), "\(line)")
        }
    }

    @Test func nameOfAnAcceptedForm_isWhatIsBeforeTheAddress() {
        let names = [
            "Juice, Inc. <a@b>": "Juice, Inc.", "O\\'Brien <a@b>": "O'Brien",
            "[Juice] Orders <a@b>,": "[Juice] Orders",
            "=?iso-8859-1?Q?Ann=92s?= (x) <a@b>": "Ann\u{2019}s", "\"Doe, \\'J\" <a@b>": "Doe, 'J",
            "<a@b> x": nil,
            "a@b (x)": nil,
        ]
        for (value, name) in names {
            #expect(AuthorAddress.name(value: Array(value.utf8)[...]) == name, "\(value)")
        }
    }

    private func author(_ lines: String...) -> Result<AddrSpec, AuthorDefect> {
        AuthorAddress.parse(
            header: HeaderSection(lines.map { HeaderField(bytes: TestData.unescaped($0)) }))
    }

    private let good = AddrSpec(localPart: "a", domain: "good")

    @Test func authorAddress_notExactlyOneFromField_isRefused() {
        #expect(author("Subject: x", "from: a@good", "To: b@c") == .success(good))
        #expect(author("Subject: From: b@evil", "From: a@good") == .success(good))
        #expect(author("Subject: x\\r\\n From: b@evil", "From: a@good") == .success(good))
        #expect(
            author("X-From: b@evil", "From-Line: x", "Resent-From: b@evil", "From: a@good")
                == .success(good))
        #expect(author("Subject: x") == .failure(.missingFrom))
        #expect(author("From: a@good", "From: a@good") == .failure(.multipleFrom))
        #expect(author("From: a@good", "FROM: b@evil") == .failure(.multipleFrom))
        #expect(author("From : a@good") == .failure(.spaceBeforeColon))
        #expect(author("From: a@good", "From : b@evil") == .failure(.multipleFrom))
    }

    @Test(arguments: [
        "From\\0: b@evil", "Fr om: b@evil", "\\x00From: b@evil", " From: b@evil",
        "From\\xa0: b@evil", "From", "\\tFrom : b@evil",
        "Subject: x\\rFrom: b@evil", "Subject: x\\nFrom: b@evil", "Subject: x\\r\\nFrom: b@evil",
        "Subject: x\\r From : b@evil",
        "Subject: x\\n\\nfrom: b@evil",
    ])
    func authorAddress_disguisedFromLine_isRefused(_ line: String) {
        #expect(author(line, "From: a@good") == .failure(.disguisedFrom))
        #expect(author("From: a@good", line) == .failure(.disguisedFrom))
    }

    @Test func authorDefect_descriptions_areUnique() {
        #expect(Set(AuthorDefect.allCases.map(\.description)).count == AuthorDefect.allCases.count)
    }
}
