// The texts of our own messages: built in, replaced by files, and checked before one is sent.

import Accounts
import Foundation
import Languages
import TestSupport
import Testing

@testable import Mail

@Suite(.blocking) struct NoticeTemplatesTests {
    private static let values = NoticeValues(
        service: "Fig & Co", relayDomain: "relay.example", code: "012 345",
        link: "https://fig.example/me/confirm/x",
        lifetime: "24 hours")

    @Test(arguments: NoticeKind.allCases) func template_builtIn_rendersCompletely(
        _ kind: NoticeKind
    ) throws {
        let rendered = try NoticeTemplates.standard().render(kind, Self.values)
        #expect(!rendered.subject.isEmpty && !rendered.text.isEmpty && !rendered.html.isEmpty)
        for text in [rendered.subject, rendered.text, rendered.html] {
            #expect(!text.contains("{{") && !text.contains("}}"))
        }
        #expect(rendered.html.contains("Fig &amp; Co") && !rendered.text.contains("&amp;"))
        #expect(!rendered.html.contains("src=") && !rendered.html.contains("<script"))
        #expect(rendered.text.split(separator: "\n").allSatisfy { $0.count <= 78 })
    }

    @Test func template_verificationWithoutURL_hasNoLink() throws {
        var values = Self.values
        values.link = nil
        let rendered = try NoticeTemplates.standard().render(.verification, values)
        #expect(
            rendered.text.contains("012 345") && !rendered.text.contains("link")
                && !rendered.html.contains("href"))
    }

    private func folder(_ files: [String: String]) throws -> String {
        let path = NSTemporaryDirectory() + "postern-templates-" + UUID().uuidString
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
        for (name, text) in files {
            try text.write(toFile: path + "/" + name, atomically: true, encoding: .utf8)
        }
        return path
    }

    @Test func template_fileInFolder_replacesBuiltIn() throws {
        let path = try folder([
            "verification.txt": "Subject: Bitte bestätigen\r\n\r\nIhr Code: {{code}}\r\n"
        ])
        defer { try? FileManager.default.removeItem(atPath: path) }
        let rendered = try NoticeTemplates(folder: path).render(.verification, Self.values)
        #expect(rendered.subject == "Bitte bestätigen" && rendered.text == "Ihr Code: 012 345\n")
        #expect(rendered.html.contains("Confirm your inbox"))
    }

    @Test(arguments: [
        ("verification.txt", "Subject: x\n\nno code here\n", "lacks {{code}}"),
        ("verification.html", "<p>no code here</p>", "lacks {{code}}"),
        ("sign-in.txt", "Subject: x\n\nno link\n", "lacks {{link}}"),
        ("source.txt", "Subject: x\n\n{{team}}\n", "lacks {{code}}"),
        ("source.html", "<p>{{code}}</p>", "lacks {{team}}"),
        ("sign-in.txt", "Hello {{link}}\n", "Subject: "),
        ("verification.txt", "Subject: x\n\n{{#code}} {{code}}\n", "not a valid Mustache template"),
        ("verifikation.txt", "Subject: x\n\n{{code}}\n", "no template has this name"),
    ])
    func template_fileUnusable_isRefusedOnLoading(
        _ name: String, _ text: String, _ message: String
    ) throws {
        let path = try folder([name: text])
        defer { try? FileManager.default.removeItem(atPath: path) }
        do {
            _ = try NoticeTemplates(folder: path)
            Issue.record("it was taken")
        } catch {
            #expect(error.path.hasSuffix(name) && error.message.contains(message), "\(error)")
        }
    }

    @Test func template_everyLanguage_isTranslatedCompletely() throws {
        let languages = try Languages.builtIn()
        #expect(NoticeTemplates.texts.count > 15)
        let templates = try NoticeTemplates.standard(languages)
        for language in languages.all.dropFirst() {
            for text in NoticeTemplates.texts {
                #expect(language.knows(text), "\(language.tag): \(text)")
            }
            for kind in NoticeKind.allCases {
                let message = templates.render(kind, Self.values, in: language)
                #expect(message.subject != templates.render(kind, Self.values).subject)
                for part in [message.text, message.html] {
                    #expect(!part.contains("{{") && !part.contains("}}"))
                }
                // People also read mail in a terminal; a link stays in one piece.
                #expect(
                    message.text.split(separator: "\n").allSatisfy {
                        $0.count <= 72 || !$0.contains(" ")
                    })
                #expect(
                    message.html.contains("<html lang=\"\(language.tag)\"")
                        && message.html.contains("rtl") == (language.tag == "ar"))
            }
            let message = templates.render(.signIn, Self.values, in: language)
            for part in [message.subject, message.text, message.html] {
                #expect(part.contains("012 345"))
            }
            for part in [message.text, message.html] {
                #expect(part.contains("https://fig.example/me/confirm/x"))
            }
        }
    }

    /// HTML that is not a complete document gets the frame of the built-in texts, with their look
    /// on dark screens.
    @Test func template_contentOnlyFile_getsFrame() throws {
        let path = try folder(["verification.html": "<h1>Hello</h1>\n<p>{{code}}</p>\n"])
        defer { try? FileManager.default.removeItem(atPath: path) }
        let html = try NoticeTemplates(folder: path).render(.verification, Self.values).html
        #expect(
            html.hasPrefix("<!DOCTYPE html>")
                && html.contains("<h1>Hello</h1>\n<p>012 345</p>\n</div>"))
        #expect(html.contains("prefers-color-scheme: dark"))
        let whole = try folder(["verification.html": "<HTML><p>{{code}}</p></HTML>"])
        defer { try? FileManager.default.removeItem(atPath: whole) }
        #expect(
            try NoticeTemplates(folder: whole).render(.verification, Self.values).html
                == "<HTML><p>012 345</p></HTML>")
    }

    @Test func template_signInWithoutURL_hasNoLink() throws {
        var values = Self.values
        values.link = nil
        let message = try NoticeTemplates.standard().render(.signIn, values)
        #expect(
            message.text.contains("012 345") && !message.text.contains("link")
                && !message.html.contains("href"))
    }
}
