// Properties of every forward, over the forward vectors and every public message converted to one.

import Foundation
import InternetMessage
import MailAuth
import MailTesting
import MilterTesting
import TestSupport
import Testing

@testable import RelayCore

@Suite(.blocking) struct ForwardPropertyTests {
    private static let addressFields: Set<String> = ["from", "reply-to", "sender", "to", "cc"]
    private static let listFields: Set<String> = [
        "list-unsubscribe", "list-post", "list-help", "list-subscribe", "list-owner",
        "list-archive",
    ]

    /// The message as from a registered sender. Fields that would be refused for their form are
    /// left out, as they have their own tests.
    private static func forced(_ bytes: [UInt8]) -> (header: HeaderSection, body: [UInt8]) {
        let message = Message.parse(Corpus.crlf(bytes))
        var seen: Set<OnceField> = []
        let fields = message.header.fields.filter { field in
            guard field.isSafe,
                !"from".elementsEqual(field.name.lowercased().filter { $0.isLetter })
            else { return false }
            return OnceField.allCases.first { field.isNamed($0.rawValue) }.map {
                seen.insert($0).inserted
            } ?? true
        }
        return (
            HeaderSection([HeaderField("From", "Billing <billing@app.example>")] + fields),
            Array(message.body)
        )
    }

    private static func modification(_ modification: Modification) -> RecordedModification {
        switch modification {
        case .changeHeader(let name, let index, let value):
            .changeHeader(name: name, index: index, value: value)
        case .insertHeader(let position, let field):
            .insertHeader(index: position, name: field.name, value: Array(field.rawValue))
        case .changeSender(let path): .changeFrom(path: path, arguments: nil)
        case .addRecipient(let path): .addRecipient(path: path, arguments: nil)
        case .deleteRecipient(let path): .deleteRecipient(path: path)
        case .replaceBody(let pieces): .replaceBody(pieces.reduce(into: []) { $0 += $1 })
        }
    }

    /// The faults of the forward of this message.
    /// - Parameters:
    ///   - isWhole: whether URIs are as their programs wrote them, so that the addresses in them
    ///     are known.
    ///   - links: counts the links of the body that lead through the relay.
    private static func faults(
        _ header: HeaderSection, _ body: [UInt8], isWhole: Bool = true, links: inout Int
    ) -> [String] {
        let evidence = AuthenticationEvidence.signed("app.example")
        let fixture = Fixture(evidence: evidence)
        let transaction = RelayTransaction(
            engine: fixture.engine,
            client: SMTPClientIdentity(
                address: "192.0.2.1", helo: "client.example", mailFrom: "bounce@app.example"),
            now: Fixture.now)
        let decision: RelayDecision
        do throws(Refusal) {
            try transaction.addRecipient("<annarelay2@relay.example>")
            for field in header.fields { transaction.addHeader(field) }
            try transaction.endHeader()
            try transaction.addBody(body[...])
            decision = transaction.finish()
        } catch {
            return ["refused: \(error.reply.text) (\(error.reason.code) \(error.reason.detail))"]
        }
        guard decision.outcome == .relay else { return ["\(decision.outcome)"] }

        let before = MessageState(
            mailFrom: "<bounce@app.example>", recipients: ["<annarelay2@relay.example>"],
            fields: header.fields.map { .init($0.name, Array($0.rawValue)) }, body: body)
        let after = before.applying(decision.modifications.map(modification))
        var faults: [String] = []

        var rewriting = ForwardRewriting(
            engine: fixture.engine, account: Fixture.anna,
            author: AddrSpec(localPart: "billing", domain: "app.example"),
            now: Fixture.now)
        guard let result = try? rewriting.rewrite(header, evidence: evidence).edits.result else {
            return ["refused by the rewriting"]
        }
        // Written after the rewriting, as they name the return path.
        let own = [FeedbackFields.identifierName, FeedbackFields.complaintName]
        for name in own where after.fields.count(where: { $0.name == name }) != 1 {
            faults.append("\(name): not one")
        }
        let rewritten = after.fields.filter { !own.contains($0.name) }
        if rewritten != result.fields.map({ .init($0.name, Array($0.rawValue)) }) {
            faults.append("indices: Postfix would make another header")
        }
        var reference = ForwardBodyReference(account: Fixture.anna) { address in
            let token = fixture.engine.tokens.reverse(
                account: Fixture.anna.number, correspondent: address)
            return AddrSpec(localPart: token.localPart, domain: "relay.example")
        }
        faults += reference.faults(header, body, after.body)
        links += reference.rewritten
        if after.recipients != ["<anna@inbox.example>"]
            || !after.mailFrom.hasSuffix("@relay.example>")
        {
            faults.append("envelope")
        }

        let again = Message.parse(after.message)
        let read = again.header.fields.filter { !own.contains($0.name) }
        if read.map(\.rawValue) != result.fields.map(\.rawValue) {
            faults.append(
                "header section parses differently: \(zip(read, result.fields).first { $0.rawValue != $1.rawValue }.map { "\($0)" } ?? "count")"
            )
        }
        if !again.body.elementsEqual(after.body) { faults.append("body begins elsewhere") }

        let stored = StoredAddresses(directory: fixture.directory, tokens: fixture.engine.tokens)
        let known = Set(
            header.fields.flatMap { Self.known(in: $0) }.flatMap {
                [$0, AddrSpec(localPart: $0.localPart.lowercased(), domain: $0.domain)]
            })
        for field in result.fields {
            let name = field.name.lowercased()
            if !field.fitsLines { faults.append("\(name): a line of more than 998 octets") }
            if !field.bytes.allSatisfy({ $0 < 0x80 }) { faults.append("\(name): not ASCII") }
            if addressFields.contains(name) {
                let list = AddressList.parse(field.rawValue)
                if !list.defects.allSatisfy({
                    $0.isLegal || $0 == .notUTF8 || $0 == .encodedWordInQuotes
                }) {
                    faults.append("\(name): \(list.defects)")
                }
                if leavesRelay(withoutQuotesAndComments(Array(field.rawValue))) {
                    faults.append("\(name): an address elsewhere: \(field.unfoldedValue)")
                }
                for mailbox in list.mailboxes {
                    if let fault = fault(mailbox.addrSpec, known, stored, fixture) {
                        faults.append("\(name): \(fault)")
                    }
                }
            } else if listFields.contains(name) {
                let targets = mailtoRecipients(field)
                for target in targets where leavesRelay(Array(target.utf8)) {
                    faults.append("\(name): \(target)")
                }
                for target in targets where isWhole {
                    for address in target.split(separator: ",").compactMap({
                        AddrSpec(envelope: String($0))
                    }) {
                        if let fault = fault(address, known, stored, fixture) {
                            faults.append("\(name): \(fault)")
                        }
                    }
                }
            }
        }
        return faults
    }

    /// Everything in a field that could be an address, unchanged and as a URI.
    private static func known(in field: HeaderField) -> [AddrSpec] {
        let uri = HeaderField.unfold(field.rawValue).filter { $0 != 0x20 && $0 != 0x09 }.split {
            "?&<>,".utf8.contains($0)
        }
        .flatMap {
            ($0.contains(UInt8(ascii: "="))
                ? [$0[...], $0.drop { $0 != UInt8(ascii: "=") }.dropFirst()] : [$0[...]])
        }
        return (uri.map { percentDecoded(Array($0)) } + [Array(field.rawValue)]).flatMap {
            AddressCandidates.find(in: $0[...]).map(\.addrSpec)
        }
    }

    /// Whether an address is neither the relay address nor a reverse address of an address in the
    /// header.
    private static func fault(
        _ address: AddrSpec, _ known: Set<AddrSpec>, _ stored: StoredAddresses, _ fixture: Fixture
    )
        -> String?
    {
        if address.localPart.lowercased() == "annarelay2" { return nil }
        guard case .token(let token) = fixture.engine.tokens.read(address.localPart),
            token.account == Fixture.anna.number
        else {
            return "no token: \(address.wireForm)"
        }
        guard let correspondent = stored.address(of: token) else {
            return "leads nowhere: \(address.wireForm)"
        }
        return known.contains(correspondent)
            ? nil : "leads to what stood nowhere: \(correspondent.wireForm)"
    }

    /// Whether an `@` has another domain than the relay's after it.
    private static func leavesRelay(_ text: [UInt8]) -> Bool {
        text.indices.contains {
            text[$0] == UInt8(ascii: "@")
                && !text[($0 + 1)...].map(\.asciiLowercased).starts(with: "relay.example".utf8)
        }
    }

    private static func withoutQuotesAndComments(_ value: [UInt8]) -> [UInt8] {
        var out: [UInt8] = []
        var isQuoted = false
        var depth = 0
        var index = 0
        while index < value.count {
            let octet = value[index]
            if octet == UInt8(ascii: "\\") {
                index += 2
                continue
            }
            if octet == UInt8(ascii: "\""), depth == 0 { isQuoted.toggle() }
            if octet == UInt8(ascii: "("), !isQuoted { depth += 1 }
            if !isQuoted, depth == 0 { out.append(octet) }
            if octet == UInt8(ascii: ")"), !isQuoted, depth > 0 { depth -= 1 }
            index += 1
        }
        return out
    }

    /// The recipients of each `mailto:`: its path and its `to` and `cc`, percent-decoded.
    private static func mailtoRecipients(_ field: HeaderField) -> [String] {
        let value = String(
            decoding: field.unfoldedBytes.filter { $0 != 0x20 && $0 != 0x09 }, as: UTF8.self)
        let text = value.lowercased()
        // At every start: closed by a bracket or not, and outside of brackets.
        return text.ranges(of: "mailto:").filter { range in
            range.lowerBound == text.startIndex
                || "<>,;".contains(text[text.index(before: range.lowerBound)])
        }.map { range in
            String(text[range.upperBound...].prefix { $0 != ">" && $0 != "<" })
        }.flatMap { (uri: String) -> [String] in
            let parts = uri.split(separator: "?", maxSplits: 1, omittingEmptySubsequences: false)
            let fields = parts.count > 1 ? parts[1].split(separator: "&") : []
            let others = fields.filter {
                !["subject", "body", "in-reply-to", "references"].contains(
                    $0.prefix { $0 != "=" }.lowercased())
            }
            return ([parts[0]] + others.map { $0.drop { $0 != "=" }.dropFirst() }).map {
                String(decoding: percentDecoded(Array($0.utf8)), as: UTF8.self)
            }
        }
    }

    private static func percentDecoded(_ text: [UInt8]) -> [UInt8] {
        var out: [UInt8] = []
        var index = 0
        while index < text.count {
            if text[index] == UInt8(ascii: "%"), index + 2 < text.count,
                let octet = UInt8(
                    String(decoding: text[(index + 1)...(index + 2)], as: UTF8.self), radix: 16)
            {
                out.append(octet)
                index += 3
            } else {
                out.append(text[index])
                index += 1
            }
        }
        return out
    }

    /// Each message ends in a decision and none in a trap. The run shows the time for all of them.
    @Test(
        .enabled(
            if: Corpus.isThere, "../shared/conformance is not there; POSTERN_CONFORMANCE names it"))
    func forward_publicMessages_keepsInvariants() {
        let entries = Corpus.entries("mail", extensions: nil)
        #expect(!entries.isEmpty)
        var (refused, links) = (0, 0)
        for entry in entries {
            let (header, body) = Self.forced(entry.bytes)
            let faults = Self.faults(header, body, links: &links)
            // Fields of 59,900 octets and more than 1,000 fields are refused on purpose, and so are
            // pieces of divided messages.
            let isBeyondLimits =
                header.fields.count > 1_000 || header.fields.contains { $0.bytes.count >= 59_900 }
            let isPiece = header.fields.contains {
                $0.isNamed("Content-Type")
                    && ContentType.parse($0.rawValue).matches("message", "partial")
            }
            let wanted = isBeyondLimits ? "(header-limit" : isPiece ? "(partial-message" : nil
            if let wanted, faults.count == 1, faults[0].contains(wanted) {
                refused += 1
            } else {
                #expect(faults.isEmpty, "\(entry.name)")
            }
        }
        print(
            "forward properties: \(entries.count) public messages, \(refused) refused, \(links) links"
        )
        #expect(links >= 20)
        #expect(refused * 100 < entries.count)
    }

    private static func vectorFiles() throws -> [URL] {
        let base = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
            .deletingLastPathComponent().appendingPathComponent(
                "Vectors/forward")
        let files = try FileManager.default.contentsOfDirectory(
            at: base, includingPropertiesForKeys: nil
        )
        .filter { $0.pathExtension == "incoming" }.sorted { $0.path < $1.path }
        try #require(!files.isEmpty, "no vector in \(base.path)")
        return files
    }

    @Test func forward_vectors_keepsInvariants() throws {
        let files = try Self.vectorFiles()
        var links = 0
        for file in files {
            let vector = try RelayVectorTests.Vector(
                String(contentsOf: file, encoding: .isoLatin1), isForward: true)
            let (header, body) = Self.forced(vector.message)
            let faults = Self.faults(header, body, links: &links)
            #expect(faults.isEmpty, "\(file.lastPathComponent)")
        }
        print("forward properties: \(files.count) vectors, \(links) links")
        #expect(links > 0)
    }

    /// Damages the address and list fields of the vectors: inserts, removes or doubles a few
    /// octets, most of them special.
    @Test func forward_damagedFields_keepsInvariants() throws {
        let files = try Self.vectorFiles()
        let specials = [
            "<", ">", "\"", "(", ")", ",", ";", ":", "@", "\\", "[", "]", " ", "=?utf-8?q?", "?=",
            "=40", "\r\n ", "mailto:",
            "%40", "&cc=", "x@y.example",
        ]
        var random = SeededRandom("damage".utf8)
        var (count, links) = (0, 0)
        for file in files {
            let vector = try RelayVectorTests.Vector(
                String(contentsOf: file, encoding: .isoLatin1), isForward: true)
            let (header, _) = Self.forced(vector.message)
            for index in header.fields.indices.dropFirst() {
                let field = header.fields[index]
                guard Self.addressFields.union(Self.listFields).contains(field.name.lowercased()),
                    field.bytes.count < 3_000
                else { continue }
                for _ in 0..<40 {
                    var value = Array(field.rawValue)
                    for _ in 0...(random.next() % 3) {
                        let at = Int(random.next() % UInt64(value.count + 1))
                        switch random.next() % 3 {
                        case 0 where at < value.count: value.remove(at: at)
                        case 1:
                            value.insert(
                                contentsOf: value[at...].prefix(Int(random.next() % 20)), at: at)
                        default:
                            value.insert(
                                contentsOf: specials[Int(random.next() % UInt64(specials.count))]
                                    .utf8, at: at)
                        }
                    }
                    var damaged = header
                    damaged.fields[index] = HeaderField(name: field.name, rawValue: value)
                    guard damaged.fields[index].isSafe else { continue }
                    count += 1
                    let faults = Self.faults(damaged, [], isWhole: false, links: &links)
                    #expect(
                        faults.isEmpty,
                        "\(file.lastPathComponent): \(String(decoding: value, as: UTF8.self))")
                }
            }
        }
        print("forward properties: \(count) damaged fields")
        #expect(count > 1_000)
    }
}
