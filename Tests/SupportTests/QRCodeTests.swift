// QR codes, read by a program that others wrote.

import Foundation
import Support
import TestSupport
import Testing

@Suite(.blocking) struct QRCodeTests {
    private static let reader = "/usr/bin/zbarimg"

    /// Lengths at the ends of versions 1 to 15: one and several blocks, and
    /// counts of one octet and two.
    private static let lengths = [1, 14, 15, 62, 63, 106, 107, 180, 181, 213, 214, 287, 411, 412]

    @Test(
        .enabled(
            if: FileManager.default.isExecutableFile(atPath: reader),
            "skipped: no zbarimg (make test-tools)"),
        arguments: lengths)
    func code_anyLength_isReadByZBar(length: Int) throws {
        let text = String(repeating: "otpauth://totp/Fig%20Co:anna?secret=GEZDGNBV&", count: 10)
            .prefix(length)
        let code = try #require(QRCode(String(text)))
        let side = (code.size + 8) * 4
        var picture = "P1\n\(side) \(side)\n"
        for y in 0..<side {
            for x in 0..<side {
                let (column, row) = (x / 4 - 4, y / 4 - 4)
                let isInside = (0..<code.size).contains(column) && (0..<code.size).contains(row)
                picture += isInside && code.isDark(column, row) ? "1 " : "0 "
            }
            picture += "\n"
        }
        let run = try ProgramRun([Self.reader, "--raw", "-q", "-"], input: Data(picture.utf8))
        #expect(run.output == text + "\n")
    }

    @Test func code_tooLong_isNone() {
        #expect(QRCode(String(repeating: "a", count: 412)) != nil)
        #expect(QRCode(String(repeating: "a", count: 413)) == nil)
    }

    @Test func path_ofCode_hasItsDarkModulesAlone() throws {
        let code = try #require(QRCode("postern"))
        var painted = Set<[Int]>()
        for match in code.path.matches(of: /M([0-9]+) ([0-9]+)h([0-9]+)v1H([0-9]+)z/) {
            let (x, y, length) = (Int(match.1) ?? -1, Int(match.2) ?? -1, Int(match.3) ?? 0)
            #expect(match.4 == match.1)
            for column in x..<x + length { painted.insert([column, y]) }
        }
        let dark = (0..<code.size).flatMap { y in
            (0..<code.size).compactMap { code.isDark($0, y) ? [$0, y] : nil }
        }
        #expect(painted == Set(dark))
    }
}
