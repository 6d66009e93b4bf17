// Typed SMTP replies: the replies that can be built, and the repair of other text.

import Milter
import TestSupport
import Testing

@Suite(.blocking) struct SMTPReplyTests {
    @Test func smtpReply_validParts_areKept() throws {
        let failure = try PermanentFailure(
            code: 550, enhancedStatus: "5.1.1", lines: ["no such address", "", "try another\t!"])
        #expect(
            failure.code == 550 && failure.enhancedStatus == "5.1.1" && failure.lines.count == 3)
        #expect(failure.description == "550 5.1.1 no such address /  / try another\t!")
        #expect(try TemporaryFailure(code: 452, enhancedStatus: "4.5.3", lines: ["x"]).code == 452)
    }

    @Test func smtpReply_codeAndStatusDisagree_throws() {
        for code in [-1, 0, 99, 250, 399, 400, 499, 600, Int.max] {
            #expect(throws: SMTPReplyError.code(code)) {
                try PermanentFailure(code: code, enhancedStatus: "5.0.0", lines: ["x"])
            }
        }
        for code in [399, 500, 599] {
            #expect(throws: SMTPReplyError.code(code)) {
                try TemporaryFailure(code: code, enhancedStatus: "4.0.0", lines: ["x"])
            }
        }
        for status in [
            "", "4.1.1", "5", "5.1", "5..1", "5.1.", "5.1.1.1", "5.1000.1", "5.1.a", "5.1.1 ",
            "５.1.1",
        ] {
            #expect(throws: SMTPReplyError.enhancedStatus(status)) {
                try PermanentFailure(code: 550, enhancedStatus: status, lines: ["x"])
            }
        }
    }

    @Test func smtpReply_linesUnfitForSMTP_throws() {
        for (text, octet) in [
            ("a\rb", 13), ("a\nb", 10), ("100%", 37), ("a\0", 0), ("ä", 0xC3), ("\u{7F}", 0x7F),
        ]
            as [(String, UInt8)]
        {
            #expect(throws: SMTPReplyError.octet(octet)) {
                try PermanentFailure(code: 550, enhancedStatus: "5.0.0", lines: [text])
            }
        }
        #expect(throws: SMTPReplyError.lineCount(0)) {
            try PermanentFailure(code: 550, enhancedStatus: "5.0.0", lines: [])
        }
        let many = [String](repeating: "x", count: 33)
        #expect(throws: SMTPReplyError.lineCount(33)) {
            try PermanentFailure(code: 550, enhancedStatus: "5.0.0", lines: many)
        }
        let long = String(repeating: "x", count: 981)
        #expect(throws: SMTPReplyError.lineLength(981)) {
            try TemporaryFailure(code: 450, enhancedStatus: "4.0.0", lines: [long])
        }
        #expect(throws: Never.self) {
            try TemporaryFailure(
                code: 450, enhancedStatus: "4.0.0",
                lines: [String](repeating: String(long.dropLast()), count: 32))
        }
    }

    @Test func smtpReply_repairedText_isValid() throws {
        let texts = [
            "", "plain", "a\r\nb\nc\rd", "\r\n\r\n", "50% of ü\0\u{1}",
            String(repeating: "x\n", count: 100),
            String(repeating: "y", count: 5000), "\n\nlate",
        ]
        for text in texts {
            let failure = PermanentFailure(repairing: 550, "5.1.1", text)
            #expect(throws: Never.self) {
                try PermanentFailure(
                    code: failure.code, enhancedStatus: failure.enhancedStatus, lines: failure.lines
                )
            }
        }
        #expect(
            PermanentFailure(repairing: 550, "5.1.1", "a\r\nb\nc\rd").lines == ["a", "b", "c", "d"])
        #expect(PermanentFailure(repairing: 550, "5.1.1", "50% ü").lines == ["50? ??"])
        #expect(PermanentFailure(repairing: 450, "4.1.1", "x").description == "554 5.0.0 x")
        #expect(TemporaryFailure(repairing: 550, "5.1.1", "x").description == "451 4.0.0 x")
    }
}
