// The cost limit for rewriting one reply: counted, and the same for ordinary mail and for a bomb.

import HostileMail
import InternetMessage
import LeakSearch
import MailTesting
import Support
import TestSupport
import Testing

@testable import RelayCore

@Suite(.blocking) struct WorkBudgetTests {
    static let engine = Fixture(evidence: .init()).engine
    private static let inbox = "anna.bergstroem@home.example"
    private static let reverse =
        engine.tokens.reverse(
            account: Fixture.anna.number,
            correspondent: AddrSpec(localPart: "billing", domain: "app.example")
        )
        .localPart
        + "@relay.example"

    struct Outcome {
        var refusal: String?
        let budget: WorkBudget
    }

    static func rewrite(
        _ fields: [HeaderField], _ body: [UInt8], settings: RelaySettings? = nil
    ) -> Outcome {
        let account = Fixture.account(
            1, "annarelay2", team: "app.example", inboxes: [inbox, "annabergstroem81@gmail.com"])
        let header = HeaderSection(
            fields.filter { $0.controls.isEmpty && !$0.isNamed("From") } + [
                HeaderField("From", "<\(inbox)>")
            ])
        let engine = settings.map { Fixture(evidence: .init(), settings: $0).engine } ?? engine
        let rewriting = ReplyRewriting(
            engine: engine, account: account, header: header, envelopeSender: inbox,
            isAutomatic: false, now: Fixture.now,
            hops: 1,
            stored: StoredAddresses(directory: engine.directory, tokens: engine.tokens))
        let budget = WorkBudget(octets: header.fields.reduce(body.count) { $0 + $1.bytes.count })
        do throws(Refusal) {
            _ = try rewriting.rewrite(body: body, budget: budget)
            return Outcome(refusal: nil, budget: budget)
        } catch {
            return Outcome(
                refusal: "\(error.reply.code) \(error.reply.enhanced) \(error.reason.code)",
                budget: budget)
        }
    }

    /// The names of slow archives that consist only of beginnings.
    private static func isArchive(_ name: String) -> Bool {
        ["zip", "pdf", "png"].contains { name.contains($0) }
    }

    /// A zip of 4,300 headers over one block would otherwise stop all replies for hours.
    @Test(arguments: Hostile.smallBombs.indices)
    func workBudget_ofABomb_isNotExceeded(index: Int) {
        let bomb = Hostile.smallBombs[index]
        let outcome = Self.rewrite(bomb.header, bomb.body)
        #expect(outcome.budget.spent <= outcome.budget.limit + WorkBudget.step, "\(bomb.name)")
        let isOver = outcome.budget.spent > outcome.budget.limit
        #expect(outcome.refusal == (isOver ? "550 5.7.7 too-much-work" : nil), "\(bomb.name)")
        // Streams over the same octets always exceed the budget.
        if bomb.name.contains("zip headers") || bomb.name.contains("streams within")
            || bomb.name.contains("100 parts")
        {
            #expect(isOver, "\(bomb.name)")
        }
    }

    /// The budget of a large message has a fixed number of units for each octet. It must be enough
    /// for any text.
    @Test func workBudget_ofAnyText_isEnough() {
        for item in Hostile.all(size: 400_000, reverse: Self.reverse)
        where !Self.isArchive(item.name) {
            let body = item.body
            let octets = item.header.reduce(body.count) { $0 + $1.bytes.count }
            let outcome = Self.rewrite(item.header, body)
            #expect(outcome.refusal != "550 5.7.7 too-much-work", "\(item.name)")
            #expect(
                outcome.budget.spent <= 150 * octets,
                "\(item.name): \(outcome.budget.spent / octets) units for an octet")
        }
    }

    /// A zip of one entry, stored blocks of deflate.
    private static func zip(_ content: [UInt8]) -> [UInt8] {
        let count = UInt16(content.count)
        return [0x50, 0x4B, 3, 4, 20, 0, 0, 0, 8, 0] + Array(repeating: 0, count: 20)
            + [1, UInt8(count & 255), UInt8(count >> 8), UInt8(~count & 255), UInt8(~count >> 8)]
            + content
    }

    private static func parts(
        _ count: Int, _ content: [UInt8]
    ) -> (fields: [HeaderField], body: [UInt8]) {
        let part =
            Array(
                "--b\r\nContent-Type: application/zip\r\nContent-Transfer-Encoding: base64\r\n\r\n"
                    .utf8)
            + Base64.encode(zip(content)) + [13, 10]
        return (
            [
                HeaderField("MIME-Version", "1.0"),
                HeaderField("Content-Type", "multipart/mixed; boundary=b"),
            ],
            (0..<count).flatMap { _ in part } + Array("--b\r\n\r\nI am \(inbox)\r\n--b--\r\n".utf8)
        )
    }

    private static func rewrite(
        _ message: (fields: [HeaderField], body: [UInt8]), limit: Int
    ) throws(Refusal) -> OutgoingMessage {
        let account = Fixture.account(1, "annarelay2", team: "app.example", inboxes: [inbox])
        let rewriting = ReplyRewriting(
            engine: engine, account: account,
            header: HeaderSection(message.fields + [HeaderField("From", "<\(inbox)>")]),
            envelopeSender: inbox,
            isAutomatic: false, now: Fixture.now, hops: 1,
            stored: StoredAddresses(directory: engine.directory, tokens: engine.tokens))
        return try rewriting.rewrite(body: message.body, budget: WorkBudget(limit: limit))
    }

    private static func spent(_ parts: Int) throws -> Int {
        let message = Self.parts(parts, Array(repeating: 0x20, count: 60_000))
        return Self.rewrite(message.fields, message.body).budget.spent
    }

    /// The minimum budget applies to the message and not to each part: a hundred small parts do not
    /// multiply it.
    @Test func workBudget_ofManyParts_isShared() throws {
        let one = try Self.spent(1)
        let many = try Self.spent(10)
        #expect(many > 7 * one && many < 12 * one)
        let message = Self.parts(10, Array(repeating: 0x20, count: 60_000))
        #expect(throws: Never.self) { _ = try Self.rewrite(message, limit: many) }
        let refusal = #expect(throws: Refusal.self) {
            _ = try Self.rewrite(message, limit: many / 2)
        }
        #expect(refusal?.reason.code == .tooMuchWork && refusal?.reply.enhanced == "5.7.7")
        // Only the leak check uses it.
        #expect(throws: Refusal.self) { _ = try Self.rewrite(message, limit: many - 1) }
    }

    /// A comparison of each id with each witness would take 75 seconds for 1.8 MB.
    @Test func references_manyIdsAndWitnesses_takeLinearWork() {
        func spent(_ size: Int) -> Int {
            let outcome = Self.rewrite(
                [HeaderField("Content-Type", "message/rfc822")], Hostile.references(size))
            #expect(outcome.refusal == nil)
            return outcome.budget.spent
        }
        let (one, two) = (spent(50_000), spent(100_000))
        #expect(two > one && two < 2 * one + one / 5)
    }

    /// The first id of a thread and the last ones identify the message that an answer belongs to.
    @Test func references_moreThanAHundredIds_areCutAfterTheFirst() throws {
        let account = Fixture.account(1, "annarelay2", team: "app.example", inboxes: [Self.inbox])
        let header = HeaderSection([])
        let ids = (1...250).map { Array("\($0)@app.example".utf8) }
        let outward = OutwardIDs(
            engine: Self.engine, account: account, header: header, work: WorkBudget(octets: 0),
            holdsToken: { _ in false })
        #expect(outward.outward(ids) == [ids[0]] + ids[151...])
        #expect(outward.outward(Array(ids[..<100])) == Array(ids[..<100]))
        let spent = WorkBudget(limit: 0)
        spent.exhaust()
        let stopped = OutwardIDs(
            engine: Self.engine, account: account, header: header, work: spent,
            holdsToken: { _ in false })
        #expect(stopped.outward(ids).isEmpty)
    }

    /// Office files are small compared with their content.
    @Test func workBudget_ofASpreadsheet_isEnough() {
        let sheet = Hostile.spreadsheet(octets: 2_500_000)
        let outcome = Self.rewrite(sheet.header, sheet.body)
        #expect(outcome.refusal == nil && outcome.budget.spent < outcome.budget.limit)
    }

    /// Pixels are not text, and a scanned white page unpacks to a thousand times its size.
    @Test func workBudget_ofAScannedPDF_isEnough() {
        let page = Hostile.scannedPage(octets: 100_000_000)
        #expect(page.body.count < 2_000_000)
        #expect(Self.rewrite(page.header, page.body).refusal == nil)
    }

    /// base64 that is base64 again at every level must not be charged twice and refused.
    @Test(arguments: 1...4)
    func workBudget_ofNestedBase64_isEnough(levels: Int) {
        let line = Array(
            (String(repeating: "QUJDREVGR0hJSktMTU5PUFFSU1RVVldYWVo=", count: 2) + "\r\n").utf8)
        var attachment = (0..<20_000).flatMap { _ in line }
        for _ in 1..<levels { attachment = Base64.encode(attachment) }
        let body =
            Array(
                "--b\r\nContent-Type: application/octet-stream\r\nContent-Transfer-Encoding: base64\r\n\r\n"
                    .utf8) + attachment
            + Array("--b--\r\n".utf8)
        let outcome = Self.rewrite(
            [
                HeaderField("MIME-Version", "1.0"),
                HeaderField("Content-Type", "multipart/mixed; boundary=b"),
            ], body)
        #expect(outcome.refusal == nil)
        #expect(
            outcome.budget.spent < 150 * body.count,
            "\(outcome.budget.spent / body.count) units for an octet")
    }

    /// Parts shorter than a stretch must not be searched twice: messages with 40 photographs, or a
    /// mailbox in pieces, would be refused.
    @Test(arguments: 1...4)
    func workBudget_ofManyNestedBase64Parts_isEnough(levels: Int) {
        let line = Array(
            (String(repeating: "QUJDREVGR0hJSktMTU5PUFFSU1RVVldYWVo=", count: 2) + "\r\n").utf8)
        var content = (0..<2_000).flatMap { _ in line }
        for _ in 1..<levels { content = Base64.encode(content) }
        content = Array(content.prefix(61_440 / 78 * 78))
        let part =
            Array(
                "--b\r\nContent-Type: application/octet-stream\r\nContent-Transfer-Encoding: base64\r\n\r\n"
                    .utf8) + content
        let body = (0..<40).flatMap { _ in part } + Array("--b--\r\n".utf8)
        let outcome = Self.rewrite(
            [
                HeaderField("MIME-Version", "1.0"),
                HeaderField("Content-Type", "multipart/mixed; boundary=b"),
            ], body)
        #expect(outcome.refusal == nil)
        #expect(
            outcome.budget.spent < 150 * body.count,
            "\(outcome.budget.spent / body.count) units for an octet")
    }
}
