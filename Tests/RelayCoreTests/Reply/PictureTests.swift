// Pictures in replies: their metadata is removed, their pixels stay, and nothing depends on their
// content.

import Foundation
import InternetMessage
import MailAuth
import MailTesting
import Support
import TestSupport
import Testing

@testable import RelayCore

@Suite(.blocking) struct PictureTests {
    private static let inbox = "anna.bergstroem@home.example"

    // MARK: Files

    private static func big(_ count: Int, _ width: Int) -> [UInt8] {
        (0..<width).reversed().map { UInt8(truncatingIfNeeded: count >> (8 * $0)) }
    }
    private static func little(_ count: Int) -> [UInt8] {
        (0..<4).map { UInt8(truncatingIfNeeded: count >> (8 * $0)) }
    }

    private static func chunk(_ type: String, _ data: [UInt8]) -> [UInt8] {
        big(data.count, 4) + Array(type.utf8) + data + [1, 2, 3, 4]
    }
    private static let end: [UInt8] = [0, 0, 0, 0, 0x49, 0x45, 0x4E, 0x44, 0xAE, 0x42, 0x60, 0x82]
    private static func png(_ metadata: [UInt8], _ rest: [UInt8] = []) -> [UInt8] {
        PNGMetadata.signature + chunk("IHDR", Array(repeating: 8, count: 13)) + metadata
            + chunk("gAMA", [0, 0, 1, 2])
            + chunk("IDAT", [0x78, 1, 0, 9]) + end + rest
    }

    private static func segment(_ marker: UInt8, _ data: [UInt8]) -> [UInt8] {
        [0xFF, marker] + big(data.count + 2, 2) + data
    }
    private static func exif(orientation: UInt8?, isLittle: Bool, text: String) -> [UInt8] {
        func number(_ value: Int, _ width: Int) -> [UInt8] {
            isLittle ? big(value, width).reversed() : big(value, width)
        }
        var entries = [number(0x010F, 2) + number(2, 2) + number(4, 4) + Array("Cam\0".utf8)]
        if let orientation {
            entries.append(
                number(0x0112, 2) + number(3, 2) + number(1, 4) + number(Int(orientation), 2) + [
                    0, 0,
                ])
        }
        let tiff =
            (isLittle ? Array("II".utf8) : Array("MM".utf8)) + number(42, 2) + number(8, 4)
            + number(entries.count, 2)
            + entries.joined() + number(0, 4) + Array(text.utf8)
        return segment(0xE1, Array("Exif\0\0".utf8) + tiff)
    }
    private static let scan: [UInt8] =
        segment(0xDA, [1, 1, 0, 0, 63, 0]) + [0x12, 0xFF, 0, 0xFF, 0xD3, 0x34]
    private static func jpeg(_ metadata: [UInt8], behind: [UInt8] = []) -> [UInt8] {
        [0xFF, 0xD8] + metadata + segment(0xDB, Array(repeating: 7, count: 65))
            + segment(0xC2, [8, 0, 1, 0, 1, 1, 1, 0x11, 0])
            + segment(0xC4, Array(repeating: 0, count: 17)) + scan + scan + [0xFF, 0xD9] + behind
    }
    private static let jfif = segment(0xE0, Array("JFIF\0".utf8) + [1, 2, 0, 0, 1, 0, 1, 0, 0])

    private static func gif(_ extra: [UInt8], behind: [UInt8] = []) -> [UInt8] {
        Array("GIF89a".utf8) + [1, 0, 1, 0, 0x80, 0, 0] + [0, 0, 0, 255, 255, 255] + extra
            + [0x21, 0xF9, 4, 0, 0, 0, 0, 0] + [0x2C, 0, 0, 0, 0, 1, 0, 1, 0, 0x81]
            + Array(repeating: 5, count: 12)
            + [2, 2, 0x44, 1, 0] + [0x3B] + behind
    }
    private static func gifExtension(_ label: UInt8, _ blocks: [[UInt8]]) -> [UInt8] {
        [0x21, label] + blocks.flatMap { [UInt8($0.count)] + $0 } + [0]
    }

    private static func webPChunk(_ name: String, _ data: [UInt8]) -> [UInt8] {
        Array(name.utf8) + little(data.count) + data + (data.count % 2 == 1 ? [0] : [])
    }
    private static func webP(_ chunks: [UInt8]) -> [UInt8] {
        Array("RIFF".utf8) + little(chunks.count + 4) + Array("WEBP".utf8) + chunks
    }

    private static let words = Array("Author: \(inbox)".utf8)

    // MARK: Removal of metadata

    /// The last three stay if they have the size that the standard gives them.
    @Test(arguments: [
        "tEXt", "zTXt", "iTXt", "eXIf", "tIME", "iCCP", "prVt", "pHYs", "gAMA", "fcTL",
    ])
    func png_losesEachChunkOfMetadata(type: String) {
        #expect(PictureMetadata.stripped(Self.png(Self.chunk(type, Self.words))) == Self.png([]))
        #expect(PictureMetadata.stripped(Self.png([])) == Self.png([]))
        #expect(PictureMetadata.stripped(Self.png([], Self.words)) == Self.png([]))
        let animated = Self.png(
            Self.chunk("acTL", [0, 0, 0, 1, 0, 0, 0, 0])
                + Self.chunk("fcTL", Array(repeating: 0, count: 26)))
        #expect(PictureMetadata.stripped(animated) == animated)
    }

    @Test func jpeg_losesEachSegmentOfMetadata() {
        let plain = Self.jpeg(Self.jfif)
        #expect(PictureMetadata.stripped(plain) == plain)
        for marker in [0xE2, 0xE3, 0xE9, 0xEC, 0xED, 0xEF, 0xFE] as [UInt8] {
            #expect(
                PictureMetadata.stripped(Self.jpeg(Self.jfif + Self.segment(marker, Self.words)))
                    == plain)
        }
        #expect(PictureMetadata.stripped(Self.jpeg(Self.jfif, behind: Self.words)) == plain)
        let thumbnail = Self.segment(
            0xE0, Array("JFIF\0".utf8) + [1, 2, 0, 0, 1, 0, 1, 1, 1, 9, 9, 9])
        #expect(PictureMetadata.stripped(Self.jpeg(thumbnail)) == plain)
        let adobe = Self.segment(0xEE, Array("Adobe".utf8) + [0, 100, 0, 0, 0, 0, 1])
        #expect(PictureMetadata.stripped(Self.jpeg(adobe)) == Self.jpeg(adobe))
        #expect(
            PictureMetadata.stripped(
                Self.jpeg(Self.exif(orientation: nil, isLittle: true, text: Self.inbox)))
                == Self.jpeg([]))
    }

    /// A phone stores a picture in the orientation of the sensor, and records that orientation.
    @Test(arguments: [true, false], Array(0...9) as [UInt8])
    func jpeg_keepsHowItIsTurned(isLittle: Bool, orientation: UInt8) throws {
        let picture = Self.jpeg(
            Self.jfif + Self.exif(orientation: orientation, isLittle: isLittle, text: Self.inbox))
        let stripped = try #require(PictureMetadata.stripped(picture))
        guard (2...8).contains(orientation) else {
            #expect(stripped == Self.jpeg(Self.jfif))
            return
        }
        let segment = Array(stripped[(2 + Self.jfif.count)...].prefix(36))
        #expect(stripped == Self.jpeg(Self.jfif + segment))
        // Exactly the data that the reader finds again, and nothing else.
        #expect(PictureMetadata.stripped(stripped) == stripped && segment.contains(orientation))
    }

    @Test func gif_losesCommentsAndPlainText() {
        let plain = Self.gif([])
        #expect(PictureMetadata.stripped(plain) == plain)
        for label in [0xFE, 0x01] as [UInt8] {
            #expect(
                PictureMetadata.stripped(Self.gif(Self.gifExtension(label, [Self.words]))) == plain)
        }
        #expect(
            PictureMetadata.stripped(
                Self.gif(Self.gifExtension(0xFF, [Array("XMP DataXMP".utf8), Self.words]))) == plain
        )
        #expect(PictureMetadata.stripped(Self.gif([], behind: Self.words)) == plain)
        let loop = Self.gif(Self.gifExtension(0xFF, [Array("NETSCAPE2.0".utf8), [1, 0, 0]]))
        #expect(PictureMetadata.stripped(loop) == loop)
        #expect(
            PictureMetadata.stripped(
                Self.gif(Self.gifExtension(0xFF, [Array("NETSCAPE2.0".utf8), Self.words]))) == plain
        )
    }

    @Test func webP_losesProfileExifAndXMP() {
        let frame = Array(repeating: 0, count: 16) as [UInt8]
        func picture(
            _ flags: UInt8, _ before: [UInt8], _ inFrame: [UInt8], _ behind: [UInt8]
        ) -> [UInt8] {
            Self.webP(
                Self.webPChunk("VP8X", [flags] + Array(repeating: 0, count: 9)) + before
                    + Self.webPChunk("ANIM", [0, 0, 0, 0, 0, 0])
                    + Self.webPChunk(
                        "ANMF",
                        frame + Self.webPChunk("ALPH", [1, 2, 3]) + Self.webPChunk("VP8 ", [4, 5])
                            + inFrame)
                    + behind)
        }
        let note = Self.webPChunk("EXIF", Self.words)
        let plain = picture(0x12, [], [], [])
        #expect(
            PictureMetadata.stripped(
                picture(
                    0x3E, Self.webPChunk("ICCP", Self.words), note,
                    note + Self.webPChunk("XMP ", Self.words)))
                == plain)
        #expect(PictureMetadata.stripped(plain) == plain)
    }

    /// A truncated picture is still a picture after the removal, without metadata.
    @Test func stripped_aDamagedPicture_endsAsOneDoes() throws {
        let pictures = [
            Self.png(Self.chunk("tEXt", Self.words)),
            Self.gif(Self.gifExtension(0xFE, [Self.words])),
            Self.jpeg(
                Self.exif(orientation: 6, isLittle: true, text: Self.inbox)
                    + Self.segment(0xFE, Self.words)),
            Self.webP(Self.webPChunk("VP8 ", [1, 2]) + Self.webPChunk("EXIF", Self.words)),
        ]
        for picture in pictures {
            for count in 16...picture.count {
                let stripped = try #require(PictureMetadata.stripped(Array(picture[..<count])))
                #expect(
                    PictureMetadata.stripped(stripped) == stripped, "\(count) of \(picture.count)")
                #expect(!String(decoding: stripped, as: UTF8.self).contains("anna"))
            }
        }
        var random = SeededRandom("pictures".utf8)
        for number in 0..<4_000 {
            var picture = pictures[number % 4]
            for _ in 0..<3 {
                picture[Int(random.next() % UInt64(picture.count))] = UInt8(
                    truncatingIfNeeded: random.next())
            }
            guard let stripped = PictureMetadata.stripped(picture) else { continue }
            #expect(stripped.count <= picture.count + 800)
        }
    }

    @Test(arguments: [
        "GIF89a was a format of its time", "RIFF1234WEBP is a word", "", "GIF89a", "\u{89}PNG",
    ])
    func kind_aText_isNoPicture(_ text: String) {
        #expect(PictureMetadata.kind(of: Array(text.utf8)) == nil)
    }

    // MARK: In a reply

    private static func reply(
        _ part: String, _ body: [UInt8]
    ) throws(Refusal) -> (body: [UInt8], reasons: [RelayReason.Code]) {
        let engine = Fixture(evidence: .init()).engine
        let account = Fixture.account(1, "annarelay2", team: "app.example", inboxes: [inbox])
        let header = HeaderSection([
            HeaderField("From", "<\(inbox)>"),
            HeaderField("Content-Type", "multipart/mixed; boundary=b"),
        ])
        let whole =
            Array("--b\r\n\r\nHello\r\n--b\r\n\(part)\r\n\r\n".utf8) + body
            + Array("\r\n--b--\r\n".utf8)
        let outgoing = try ReplyRewriting(
            engine: engine, account: account, header: header, envelopeSender: inbox,
            isAutomatic: false, now: Fixture.now,
            hops: 1,
            stored: StoredAddresses(directory: engine.directory, tokens: engine.tokens)
        ).rewrite(body: whole)
        return (Array((outgoing.body ?? [whole[...]]).joined()), outgoing.reasons.map(\.code))
    }

    private static func encoded(_ picture: [UInt8]) -> String {
        String(decoding: Base64.encode(picture), as: UTF8.self)
    }

    @Test(arguments: ["image/png; name=logo.png", "application/octet-stream", "image/jpeg"])
    func reply_aPictureWithTheInboxInItsMetadata_isRelayedWithout(type: String) throws {
        let field = "Content-Type: \(type)\r\nContent-Transfer-Encoding: base64"
        let dirty = try Self.reply(field, Base64.encode(Self.png(Self.chunk("tEXt", Self.words))))
        let sent = String(decoding: dirty.body, as: UTF8.self).replacing("\r\n", with: "")
        #expect(sent.contains(Self.encoded(Self.png([])).replacing("\r\n", with: "")))
        #expect(dirty.reasons == [.pictureMetadata])
        let clean = try Self.reply(field, Base64.encode(Self.png([])))
        #expect(clean.body == dirty.body && clean.reasons.isEmpty)
    }

    /// A logo of the team's returns, with its guess in the pixels.
    @Test func reply_aGuessInThePixels_makesNoDifference() throws {
        let field = "Content-Type: image/png\r\nContent-Transfer-Encoding: base64"
        for extra in [[], Self.chunk("tEXt", [1])] {
            for size in [0, 60_000] {
                var bodies: [[UInt8]] = []
                for guess in [Self.inbox, "clara.lindqvist@home.example"] {
                    let pixels = Self.chunk(
                        "IDAT", Array(guess.utf8) + Array(repeating: 0, count: size))
                    let sent = try Self.reply(field, Base64.encode(Self.png(extra + pixels)))
                    let parts = String(decoding: sent.body, as: UTF8.self).components(
                        separatedBy: "\r\n\r\n")
                    let decoded = Base64.decode(Array((parts.dropFirst(2).first ?? "").utf8)).bytes
                    bodies.append(Array(decoded.split(separator: Array(guess.utf8)).joined()))
                    #expect(String(decoding: decoded, as: UTF8.self).contains(guess))
                }
                #expect(bodies[0] == bodies[1])
            }
        }
    }

    /// The search continues after a picture.
    @Test func reply_theInboxBehindAPicture_isFound() {
        let part =
            "Content-Type: image/png\r\nContent-Transfer-Encoding: base64\r\n\r\n\(Self.encoded(Self.png([])))\r\n--b\r\nContent-Type: application/pdf"
        let refusal = #expect(throws: Refusal.self) {
            try Self.reply(part, Array("\u{1}\u{2}\(Self.inbox)\u{3}".utf8))
        }
        #expect(refusal?.reason.code == .unrewritablePart)
    }
}
