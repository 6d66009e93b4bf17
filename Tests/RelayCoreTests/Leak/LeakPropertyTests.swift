// Every public message as a reply, with an inbox planted in each place in which mail programs write
// one: refused, or free of it.

import Foundation
import InternetMessage
import MailTesting
import TestSupport
import Testing

@testable import RelayCore

@Suite(.blocking) struct LeakPropertyTests {
    struct Planted {
        let name: String
        let inbox: AddrSpec
        let host: String
        let helo: String
        let address: String
        let reverse: AddrSpec
        let header: HeaderSection
        let body: [UInt8]
    }

    /// A reply made from a public message.
    private static func plant(
        _ entry: Corpus.Entry, isPlanted: Bool, engine: RelayEngine
    ) -> Planted {
        var random = SeededRandom(entry.name.utf8)
        let isShared = random.next() % 3 == 0
        let domain = isShared ? "gmail.com" : "\(random.word(9)).example"
        let inbox = AddrSpec(localPart: "\(random.word(5)).\(random.word(6))", domain: domain)
        let host = "\(random.word(8)).client.test"
        let helo = "desktop-\(random.word(7))"
        let address = "198.51.100.\(random.next() % 200 + 20)"
        let correspondent = AddrSpec(localPart: "billing", domain: "app.example")
        let token = engine.tokens.reverse(
            account: Fixture.anna.number, correspondent: correspondent)
        let reverse = AddrSpec(localPart: token.localPart, domain: "relay.example")

        var bytes = Corpus.crlf(entry.bytes)
        if entry.name.hasSuffix(".ics") || entry.name.contains("calendar/") {
            bytes =
                Array(
                    "Subject: Accepted\r\nMIME-Version: 1.0\r\nContent-Type: text/calendar; charset=utf-8; method=REPLY\r\nContent-Transfer-Encoding: 8bit\r\n\r\n"
                        .utf8) + bytes
        } else if entry.name.hasPrefix("replies/"), entry.name.hasSuffix(".txt"),
            !looksLikeMessage(bytes)
        {
            bytes =
                Array(
                    "Subject: Re: order\r\nMIME-Version: 1.0\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Transfer-Encoding: 8bit\r\n\r\n"
                        .utf8) + bytes
        }
        let old = isPlanted ? mostFrequentAddress(bytes) : nil
        if let old { bytes = replace(old, by: Array(inbox.wireForm.utf8), in: bytes) }
        let message = Message.parse(bytes)
        var fields = message.header.fields.filter { field in
            ![
                "from", "sender", "reply-to", "delivered-to", "x-original-to", "received",
                "return-path",
            ].contains(
                field.name.lowercased())
                && !field.name.lowercased().hasPrefix("resent-")
        }
        fields += [
            HeaderField(
                "Received",
                "from \(helo) (\(host) [\(address)]) by mx.\(domain) with ESMTPSA id x for <\(reverse.wireForm)>; Fri, 21 Nov 2025 05:00:00 +0000"
            ),
            HeaderField(
                "Received",
                "from mx.\(domain) by store.\(domain) for <\(inbox.wireForm)>; Fri, 21 Nov 2025 05:00:00 +0000"
            ),
            HeaderField("From", "Anna Example <\(inbox.wireForm)>"),
            HeaderField("Reply-To", "<\(inbox.wireForm)>"),
            HeaderField("X-Originating-IP", "[\(address)]"),
        ]
        var body = Array(message.body)
        let type =
            message.header.first("Content-Type").map { ContentType.parse($0.rawValue) }
            ?? .plainText
        let encoding =
            message.header.first("Content-Transfer-Encoding").map {
                TransferEncoding.parse($0.rawValue)
            } ?? .sevenBit
        if isPlanted, type.matches("text", "plain"), encoding.isIdentity,
            type.charset?.hasPrefix("utf-16") != true
        {
            body += Array(
                "\r\n> On Friday, billing at app.example <\(reverse.wireForm)> wrote to \(inbox.wireForm):\r\n-- \r\nAnna\r\n\(inbox.wireForm.uppercased())\r\n"
                    .utf8)
        }
        return Planted(
            name: entry.name, inbox: inbox, host: host, helo: helo, address: address,
            reverse: reverse,
            header: HeaderSection(fields), body: body)
    }

    private static func looksLikeMessage(_ bytes: [UInt8]) -> Bool {
        let header = Message.parse(Array(bytes.prefix(4_000))).header
        return header.first("From") != nil
            && (header.first("Subject") != nil || header.first("Date") != nil
                || header.first("MIME-Version") != nil)
    }

    private static func mostFrequentAddress(_ bytes: [UInt8]) -> [UInt8]? {
        func isLocal(_ octet: UInt8) -> Bool {
            octet.isASCIILetter || octet.isASCIIDigit || "._+-".utf8.contains(octet)
        }
        func isDomain(_ octet: UInt8) -> Bool {
            octet.isASCIILetter || octet.isASCIIDigit || octet == 0x2E || octet == 0x2D
        }
        var counts: [[UInt8]: Int] = [:]
        for at in bytes.indices where bytes[at] == 0x40 {
            var start = at
            while start > 0, at - start < 64, isLocal(bytes[start - 1]) { start -= 1 }
            var end = at + 1
            while end < bytes.count, end - at < 200, isDomain(bytes[end]) { end += 1 }
            while end > at + 1, !(bytes[end - 1].isASCIILetter || bytes[end - 1].isASCIIDigit) {
                end -= 1
            }
            guard start < at, bytes[start].isASCIILetter || bytes[start].isASCIIDigit,
                bytes[at..<end].contains(0x2E)
            else {
                continue
            }
            counts[Array(bytes[start..<end]), default: 0] += 1
        }
        return counts.max {
            ($0.value, String(decoding: $1.key, as: UTF8.self)) < (
                $1.value, String(decoding: $0.key, as: UTF8.self)
            )
        }?.key
    }

    private static func replace(_ old: [UInt8], by new: [UInt8], in bytes: [UInt8]) -> [UInt8] {
        var output: [UInt8] = []
        var index = 0
        while index < bytes.count {
            if bytes[index] == old[0], index + old.count <= bytes.count,
                bytes[index..<(index + old.count)].elementsEqual(old)
            {
                output += new
                index += old.count
            } else {
                output.append(bytes[index])
                index += 1
            }
        }
        return output
    }

    private static func account(_ inbox: AddrSpec) -> RelayAccount {
        let own = UserInbox(address: InboxAddress(inbox), isVerified: true)
        return RelayAccount(
            number: Fixture.anna.number, relayAddress: Fixture.anna.relayAddress,
            isForwardingOn: true, hasLiveGrant: true,
            inbox: own, inboxes: [own],
            sharedName: nil, sources: Fixture.anna.sources)
    }

    private static func rewrite(
        _ planted: Planted, engine: RelayEngine
    ) -> Result<
        (header: HeaderSection, body: [UInt8], isBounded: Bool), Refusal
    > {
        let stored = StoredAddresses(directory: engine.directory, tokens: engine.tokens)
        let rewriting = ReplyRewriting(
            engine: engine, account: account(planted.inbox), header: planted.header,
            envelopeSender: planted.inbox.wireForm,
            isAutomatic: false,
            now: Fixture.now, hops: 1, stored: stored)
        do throws(Refusal) {
            let outgoing = try rewriting.rewrite(body: planted.body)
            return .success(
                (
                    outgoing.header,
                    (outgoing.body ?? [planted.body[...]]).reduce(into: []) { $0 += $1 },
                    outgoing.reasons.contains {
                        $0.code == .typedBound && $0.detail.contains("addresses")
                    }
                ))
        } catch {
            return .failure(error)
        }
    }

    private static func contains(_ bytes: [UInt8], _ word: String) -> Bool {
        OctetSearch.find(word.lowercased(), in: bytes.map(\.asciiLowercased)) != nil
    }

    @Test(
        .enabled(
            if: Corpus.isThere && Corpus.hasLeakcheck,
            "../shared/conformance or leakcheck.py is not there; POSTERN_CONFORMANCE and POSTERN_LEAKCHECK name them"
        ))
    func reply_publicMessages_leaksNothing() throws {
        let engine = Fixture(evidence: .init()).engine
        var items: [LeakOracle.Item] = []
        var refused: [String] = []
        for folder in ["mail", "bounces", "replies", "calendar"] {
            let entries = Corpus.entries(folder)
            #expect(!entries.isEmpty, "\(folder) holds no message")
            var refusals = 0
            for entry in entries {
                let planted = Self.plant(entry, isPlanted: true, engine: engine)
                switch Self.rewrite(planted, engine: engine) {
                case .failure(let refusal):
                    refusals += 1
                    refused.append(
                        "\(planted.name): \(refusal.reason.code) \(refusal.reason.detail)")
                    #expect(!Self.contains(Array(refusal.reply.text.utf8), planted.inbox.localPart))
                case .success(let message):
                    let bytes = message.header.serialized + [0x0D, 0x0A] + message.body
                    items.append(
                        LeakOracle.Item(
                            id: planted.name, address: planted.inbox.wireForm, message: bytes))
                    for trace in [
                        planted.host, planted.helo, planted.address, planted.reverse.localPart,
                    ] {
                        #expect(!Self.contains(bytes, trace), "\(planted.name): \(trace)")
                    }
                }
            }
            print("leak \(folder): \(entries.count) messages, \(refusals) refused")
            #expect(
                refusals * 20 < entries.count, "\(folder): \(refusals) of \(entries.count) refused")
        }
        for line in refused { print("  refused \(line)") }
        for (id, hits) in try LeakOracle.run(items).sorted(by: { $0.key < $1.key }) {
            Issue.record("\(id): \(hits)")
        }
        print("leakcheck.py: \(items.count) messages")
    }

    @Test(
        .enabled(
            if: Corpus.isThere, "../shared/conformance is not there; POSTERN_CONFORMANCE names it"))
    func reply_withoutTheInbox_isUnchanged() {
        let engine = Fixture(evidence: .init()).engine
        var total = 0
        var refused = 0
        var bounded = 0
        for folder in ["mail", "bounces", "replies", "calendar"] {
            for entry in Corpus.entries(folder) {
                let planted = Self.plant(entry, isPlanted: false, engine: engine)
                total += 1
                guard case .success(let message) = Self.rewrite(planted, engine: engine) else {
                    refused += 1
                    print("  refused \(planted.name)")
                    continue
                }
                let before = Self.leaves(planted.header, planted.body)
                let after = Self.leaves(message.header, message.body)
                #expect(before.map(\.type) == after.map(\.type), "\(planted.name)")
                // All addresses are removed from text with more addresses than one reply may
                // confirm.
                if message.isBounded {
                    bounded += 1
                    continue
                }
                for (old, new) in zip(before, after) {
                    if let typed = old.typed {
                        #expect(Self.holds(new.text, typed), "\(planted.name): typed text changed")
                        let (lines, left) = (Self.lines(old.text), Self.lines(new.text))
                        #expect(
                            abs(lines - left) <= 2 + lines / 50,
                            "\(planted.name): \(lines) lines, \(left) left")
                    } else {
                        #expect(old.text == new.text, "\(planted.name)")
                    }
                }
            }
        }
        print("unchanged: \(total) messages, \(refused) refused, \(bounded) with many addresses")
        #expect(refused * 20 < total)
    }

    /// One part of a message, decoded.
    private struct Leaf {
        let type: String
        let text: String
        /// The user's typed text in it, in order; nil if all of it must stay.
        let typed: [String]?
    }

    private static func lines(_ text: String) -> Int { text.utf8.count { $0 == 0x0A } }

    /// Whether a text contains pieces in their order.
    private static func holds(_ text: String, _ pieces: [String]) -> Bool {
        let text = Array(text.utf8)
        var from = 0
        for piece in pieces {
            guard let found = OctetSearch.find(piece, in: Array(text[from...])) else {
                return false
            }
            from += found + piece.utf8.count
        }
        return true
    }

    /// The decoded leaves of a message, and its structure. Report fields, headers within messages,
    /// and answers of calendars are left out, as some of those are removed.
    private static func leaves(_ header: HeaderSection, _ body: [UInt8]) -> [Leaf] {
        let all = MIMEPart.parse(header: header, body: body).flattened
        // The form of one part may decide about another one.
        let isNeutral =
            AutomaticMail.isWrittenByProgram(header)
            || all.contains {
                $0.contentType.matches("multipart", "alternative")
                    || $0.contentType.matches("message")
            }
        // Signatures and keys are removed, and the parts next to them become mixed parts.
        return all.filter {
            CryptographicPart($0, in: body) == nil && $0.contentType.type != "signature"
        }.map { part in
            let subtype =
                part.contentType.matches("multipart", "signed") ? "mixed" : part.contentType.subtype
            let type = "\(part.depth) \(part.contentType.type)/\(subtype)"
            guard !part.isComposite, !PartKind.isHeaderFields(part.contentType),
                !part.contentType.matches("message"),
                !PartKind.isContentLines(part)
            else { return Leaf(type: type, text: "", typed: nil) }
            let decoded = part.transferEncoding.decode(body[part.bodyRange])
            let bytes = decoded?.bytes ?? Array(body[part.bodyRange])
            // Pictures lose their metadata.
            let shown =
                PartKind.isText(part.contentType) ? bytes : PictureMetadata.stripped(bytes) ?? bytes
            // Ids of parts are hidden, regardless of their author (`ContentIDs`).
            func text(_ octets: some Collection<UInt8>) -> String {
                String(decoding: octets, as: UTF8.self).replacing(
                    /(?i)cid:[^"'>\s)]*/, with: "cid:")
            }
            guard PartKind.isText(part.contentType) || PartKind.mayBeText(part) else {
                return Leaf(type: type, text: text(shown), typed: nil)
            }
            var typed: [String] = []
            let stretches = Stretches(
                bytes, syntax: PartKind.syntax(part.contentType),
                place: isNeutral || part.contentType.matches("multipart") ? .whole : .body)
            stretches.forEach(upTo: bytes.count) { range, standing in
                if standing.isTyped { typed.append(text(bytes[range])) }
            }
            return Leaf(type: type, text: text(shown), typed: stretches.isTyped ? nil : typed)
        }
    }
}
