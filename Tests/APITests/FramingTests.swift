// Generated framings of requests: framings that two readers of HTTP could divide differently are
// refused, or read in only one way.

import Database
import Foundation
import HTTP
import TestSupport
import Testing

@Suite(.blocking) struct FramingTests {
    /// `POSTERN_GENERATED=SEED:COUNT` makes others, and more of them.
    private static let (seed, count) = Generated.settings(count: 150)

    /// The text of one request, and its allowed answers.
    private struct Piece {
        let text: String
        /// Octets that the route must see; nil if the request must be refused.
        let octets: Int?
        /// Whether a refusal is also correct.
        var mayBeRefused = false
    }

    /// A request within bodies, which no reader may find.
    private static let hidden = "POST /hidden HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n"

    private static func chunked(_ body: String, _ random: inout SeededGenerator) -> String {
        var (rest, text) = (Array(body.utf8)[...], "")
        while !rest.isEmpty {
            let part = rest.prefix(Int.random(in: 1...40, using: &random))
            rest = rest.dropFirst(part.count)
            let size = String(part.count, radix: 16, uppercase: Bool.random(using: &random))
            text +=
                (Bool.random(using: &random) ? "0" : "") + size
                + (Int.random(in: 0..<4, using: &random) == 0 ? ";x=1" : "")
                + "\r\n"
            text += String(decoding: part, as: UTF8.self) + "\r\n"
        }
        return text + "0\r\n"
            + (Int.random(in: 0..<4, using: &random) == 0 ? "X-Trailer: 1\r\n" : "") + "\r\n"
    }

    private static func piece(_ random: inout SeededGenerator) -> Piece {
        let body = String(repeating: "x", count: Int.random(in: 0...20, using: &random)) + hidden
        let length = body.utf8.count
        let start = "POST /echo HTTP/1.1\r\nHost: a\r\n"
        let whole = chunked(body, &random)
        func head(_ fields: String...) -> String {
            start + fields.map { $0 + "\r\n" }.joined() + "\r\n"
        }
        let wrong = length - hidden.utf8.count
        let pieces: [Piece] = [
            Piece(text: head("Content-Length: \(length)") + body, octets: length),
            Piece(text: head("content-length:\(length)  ") + body, octets: length),
            Piece(text: head("Transfer-Encoding: chunked") + whole, octets: length),
            Piece(
                text: head("transfer-encoding: Chunked") + whole, octets: length, mayBeRefused: true
            ),
            // Two lengths, and fields that do not give the length of the body.
            Piece(
                text: head("Content-Length: \(length)", "Content-Length: \(wrong)") + body,
                octets: nil),
            Piece(
                text: head("Content-Length: \(wrong)", "Content-Length: \(length)") + body,
                octets: nil),
            Piece(text: head("Content-Length: \(wrong), \(length)") + body, octets: nil),
            Piece(text: head("Content-Length: +\(length)") + body, octets: nil),
            Piece(text: head("Content-Length: 0x\(String(length, radix: 16))") + body, octets: nil),
            Piece(text: head("Content-Length: -1") + body, octets: nil),
            Piece(text: head("Content-Length: \(length) 0") + body, octets: nil),
            Piece(text: head("Content-Length: 99999999999999999999999") + body, octets: nil),
            // Both, in either order: the chunks count (RFC 9112 section 6.1), or the request is
            // refused.
            Piece(
                text: head("Content-Length: \(wrong)", "Transfer-Encoding: chunked") + whole,
                octets: length, mayBeRefused: true),
            Piece(
                text: head("Transfer-Encoding: chunked", "Content-Length: 4") + whole,
                octets: length, mayBeRefused: true),
            Piece(text: head("Transfer-Encoding: chunked, identity") + whole, octets: nil),
            Piece(text: head("Transfer-Encoding: xchunked") + whole, octets: nil),
            Piece(
                text: head("Transfer-Encoding: identity", "Content-Length: \(length)") + body,
                octets: nil),
            Piece(text: head("Transfer-Encoding : chunked") + whole, octets: nil),
            Piece(
                text: head("Transfer-Encoding: chunked", "Transfer-Encoding: identity") + whole,
                octets: nil),
            Piece(
                text: head("X: 1", " Transfer-Encoding: chunked", "Content-Length: \(length)")
                    + body, octets: length,
                mayBeRefused: true),
            // Invalid chunks.
            Piece(text: head("Transfer-Encoding: chunked") + "g\r\n" + body, octets: nil),
            Piece(text: head("Transfer-Encoding: chunked") + "-1\r\n" + body, octets: nil),
            Piece(
                text: head("Transfer-Encoding: chunked") + "0x5\r\nabcde\r\n0\r\n\r\n", octets: nil),
            Piece(
                text: head("Transfer-Encoding: chunked") + "fffffffffffffffff\r\n" + body,
                octets: nil),
            Piece(
                text: head("Transfer-Encoding: chunked") + "3\r\nabcdef\r\n0\r\n\r\n", octets: nil),
            // Lines and names.
            Piece(
                text:
                    "POST /echo HTTP/1.1\r\nHost: a\r\nX\0: 1\r\nContent-Length: \(length)\r\n\r\n"
                    + body, octets: nil),
            Piece(
                text:
                    "POST /echo HTTP/1.1\r\nHost: a\r\nX: 1\rContent-Length: 0\r\nContent-Length: \(length)\r\n\r\n"
                    + body,
                octets: nil),
            Piece(
                text: "POST /echo HTTP/1.1\r\nContent-Length: \(length)\r\n\r\n" + body, octets: nil
            ),
            Piece(
                text:
                    "POST /echo HTTP/1.1\r\nHost: a\r\nHost: b\r\nContent-Length: \(length)\r\n\r\n"
                    + body, octets: nil),
            Piece(
                text: "POST /echo HTTP/9.9\r\nHost: a\r\nContent-Length: \(length)\r\n\r\n" + body,
                octets: nil),
            // Two spaces divide nothing differently: accepted or refused.
            Piece(
                text: "POST  /echo HTTP/1.1\r\nHost: a\r\nContent-Length: \(length)\r\n\r\n" + body,
                octets: length,
                mayBeRefused: true),
        ]
        return pieces[Int.random(in: 0..<pieces.count, using: &random)]
    }

    /// The fault of an answer; nil if it has none.
    private static func fault(of answer: String, to pieces: [Piece]) -> String? {
        // Answers begin after a line end or at the beginning; none of ours has such a line in its
        // body.
        let statuses = answer.components(separatedBy: "HTTP/1.1 ").dropFirst().compactMap {
            Int($0.prefix(3))
        }
        let bodies = answer.components(separatedBy: "{\"octets\":").dropFirst().compactMap {
            Int($0.prefix { $0.isNumber })
        }
        let readable = pieces.prefix { $0.octets != nil }
        if statuses.contains(404) { return "a hidden request was found" }
        // For valid requests, the octets are right and in order; after a refused one nothing
        // follows.
        if !readable.compactMap(\.octets).starts(with: bodies) { return "other octets were read" }
        if pieces.allSatisfy({ $0.octets != nil && !$0.mayBeRefused }),
            bodies.count != pieces.count || statuses.last != 200
        {
            return "a request in order was not answered"
        }
        if readable.count < pieces.count, statuses.last == 200, statuses.count > readable.count {
            return "a request that is none was answered"
        }
        return statuses.dropLast().allSatisfy { $0 == 200 } ? nil : "something follows a refusal"
    }

    /// Every case has its own connection and generator, so that several run at a time and each can
    /// be made again by its number.
    @Test func requestFraming_generated_findsNoRequestInABody() async throws {
        let fixture = try APIFixture { _ in [] }
        let listener = try await Listener(fixture) {
            $0.body = .seconds(2)
            $0.head = .seconds(2)
            $0.linger = .milliseconds(100)
        }
        let lanes = 4
        let pool = BlockingPool(.requests, threads: lanes)
        defer { Task.detached { await pool.stop() } }
        try await withThrowingTaskGroup(of: Void.self) { group in
            for lane in 0..<lanes {
                group.addTask {
                    try await pool.run { [port = listener.port] in
                        for number in stride(from: lane, to: Self.count, by: lanes) {
                            try Self.play(number, port)
                        }
                    }
                }
            }
            try await group.waitForAll()
        }
        // A line of the log names the route that was found, but no path.
        #expect(
            !fixture.log.lines.contains { $0.contains("status=404") }, "a hidden request was found")
    }

    private static func play(_ number: Int, _ port: UInt16) throws {
        var random = SeededGenerator(seed: seed &<< 32 &+ UInt64(number))
        let pieces = (0..<Int.random(in: 1...3, using: &random)).map { _ in piece(&random) }
        let text =
            pieces.map(\.text).joined()
            + "GET /healthz HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
        let wire = try Wire(port)
        wire.send(text)
        let answer = wire.rest()
        if let fault = fault(of: answer, to: pieces) {
            Issue.record(
                "\(fault): seed \(seed), number \(number): \(text.debugDescription) → \(answer.debugDescription)"
            )
        }
    }
}
