// The button and the script that apps put on their pages.

import Foundation
import FoundationXML
import HTTPTypes
import Languages
import TestSupport
import Testing

@testable import API

@Suite(.blocking) struct SignInButtonTests {
    private func fixture() async throws -> APIFixture {
        try await ProviderFixture(
            authorizationEndpoint: nil, signInPage: "https://sign-in.example/"
        ).api
    }

    private func field(_ response: Response, _ name: String) throws -> String? {
        response.headers[try #require(HTTPField.Name(name))]
    }

    /// Every element, with its attributes; throws for text that is not XML.
    private final class Reader: NSObject, XMLParserDelegate {
        var elements: [(name: String, attributes: [String: String])] = []
        var text = ""

        init(_ svg: [UInt8]) throws {
            super.init()
            let parser = XMLParser(data: Data(svg))
            parser.delegate = self
            guard parser.parse() else { throw ReadingFailed() }
        }

        struct ReadingFailed: Error {}

        func parser(
            _ parser: XMLParser, didStartElement name: String, namespaceURI: String?,
            qualifiedName: String?,
            attributes: [String: String] = [:]
        ) { elements.append((name, attributes)) }

        func parser(_ parser: XMLParser, foundCharacters string: String) { text += string }
    }

    @Test func button_everyKindStyleAndLanguage_fitsItsText() async throws {
        let fixture = try await fixture()
        for kind in ButtonKind.allCases {
            for style in SignInButton.Style.allCases {
                for language in ["en", "de", "fr", "es", "ja", "ar"] {
                    for size in ["", "&height=32", "&height=64&width=480", "&width=160"] {
                        let path =
                            "/auth/button.svg?kind=\(kind.rawValue)&style=\(style.rawValue)&lang=\(language)\(size)"
                        let answer = try await fixture.ask(.get, path)
                        try #require(answer.status == 200, "\(path): \(answer.text)")
                        #expect(answer.headers[.contentType] == "image/svg+xml")
                        let read = try Reader(answer.body)
                        let image = try #require(read.elements.first)
                        #expect(image.name == "svg" && image.attributes["lang"] == language)
                        let width = try #require(image.attributes["width"].flatMap(Double.init))
                        let text = try #require(
                            read.elements.last { $0.name == "text" }?.attributes)
                        let middle = try #require(text["x"].flatMap(Double.init))
                        let length = try #require(text["textLength"].flatMap(Double.init))
                        #expect(
                            length > 0 && middle - length / 2 > 0 && middle + length / 2 < width,
                            "\(path)")
                        // The mark comes before the text in reading order.
                        let mark = try #require(
                            read.elements.dropFirst().first { $0.name == "svg" }?.attributes["x"])
                        #expect(
                            (try #require(Double(mark)) > middle) == (language == "ar"), "\(path)")
                        #expect(text["direction"] == (language == "ar" ? "rtl" : "ltr"))
                        let said = kind.text(
                            try Languages.builtIn().best([language], accepted: nil),
                            service: "Postern")
                        #expect(said.contains("Postern") && read.text.contains(said), "\(path)")
                    }
                }
            }
        }
    }

    @Test func button_withLogoRadiusAndBorder_hasThem() async throws {
        let fixture = try await fixture()
        func button(
            _ query: String
        ) async throws -> (
            svg: [String: String], rect: [String: String], texts: Int, markAt: Double
        ) {
            let read = try Reader(try await fixture.ask(.get, "/auth/button.svg?\(query)").body)
            return (
                try #require(read.elements.first).attributes,
                try #require(read.elements.first { $0.name == "rect" }).attributes,
                read.elements.count { $0.name == "text" },
                try #require(
                    read.elements.dropFirst().first { $0.name == "svg" }?.attributes["x"].flatMap(
                        Double.init))
            )
        }
        let only = try await button("logo=only&height=48")
        #expect(
            only.svg["width"] == "48" && only.svg["height"] == "48" && only.texts == 0
                && only.svg["role"] == "img")
        let edge = try await button("logo=edge&width=400")
        let beside = try await button("width=400")
        #expect(edge.texts == 1 && edge.markAt < 20 && beside.markAt > 60)
        #expect(
            try await button("logo=edge&width=400&lang=ar").markAt > 360, "where reading begins")
        let (square, round) = (try await button("radius=0"), try await button("radius=22"))
        #expect(square.rect["rx"] == "0" && round.rect["rx"] == "21.50")
        #expect(try await button("radius=32&height=32").rect["rx"] == "15.50", "round, and no more")
        let (lined, plain) = (
            try await button("border=yes"), try await button("style=outline&border=no")
        )
        #expect(lined.rect["stroke"] != nil && plain.rect["stroke"] == nil)
    }

    @Test func button_served_isCacheableAndEmbeddable() async throws {
        let fixture = try await fixture()
        for path in ["/auth/button.svg", "/auth/sign-in.js"] {
            let answer = try await fixture.ask(.get, path)
            #expect(answer.status == 200)
            #expect(answer.headers[.cacheControl] == "public, max-age=86400")
            #expect(answer.headers[.setCookie] == nil)
            #expect(
                try field(answer, "Content-Security-Policy")
                    == "default-src 'none'; frame-ancestors 'none'; sandbox")
            #expect(try field(answer, "Cross-Origin-Resource-Policy") == "cross-origin")
            #expect(try field(answer, "X-Content-Type-Options") == "nosniff")
        }
        let svg = try Reader(try await fixture.ask(.get, "/auth/button.svg").body)
        #expect(
            Set(svg.elements.map(\.name)).isSubset(of: ["svg", "title", "rect", "path", "text"]))
    }

    @Test(arguments: [
        "logo=none", "radius=33", "radius=-1", "border=1", "logo=only&width=64",
        "kind=%3Cscript%3E", "style=%22%3E%3Cscript%3E",
        "height=31", "height=65", "height=+44", "height=4e1", "width=159",
        "width=99999999999999999999", "width=", "script=1", "lang=de&lang=fr", "kind=%FF",
    ]) func button_invalidQuery_isRefusedNotEchoed(_ query: String) async throws {
        let answer = try await fixture().ask(.get, "/auth/button.svg?\(query)")
        #expect(answer.status == 400, "\(answer.text)")
        #expect(!answer.text.contains("<") && !answer.text.contains("script>"))
    }

    @Test(arguments: ["%3C/svg%3E%3Cscript%3E", "xx", "", "en-GB", "de-AT", "AR"])
    func button_unknownLanguage_isEnglish(_ language: String) async throws {
        let answer = try await fixture().ask(.get, "/auth/button.svg?lang=\(language)")
        #expect(answer.status == 200 && !answer.text.contains("script"))
        let expected = ["de-AT": "de", "AR": "ar"][language] ?? "en"
        #expect(try Reader(answer.body).elements.first?.attributes["lang"] == expected)
    }

    @Test func button_serviceName_isEscaped() throws {
        let svg = SignInButton().svg(service: "<&\"'Postern", mark: "")
        #expect(try Reader(Array(svg.utf8)).text.contains("Sign in with <&\"'Postern"))
        // The letters of a long name are closer together, and stay within the button.
        let long = try Reader(
            Array(SignInButton().svg(service: String(repeating: "W", count: 200), mark: "").utf8))
        #expect(long.elements.first?.attributes["width"] == "480")
        let script = SignInRoutes.script(
            issuer: "https://id.example", service: "a\"b\\c", languages: .english)
        #expect(script.contains(#"const service = "a\"b\\c";"#))
    }

    @Test func script_served_isSmallAndNamesItsIssuer() async throws {
        let answer = try await fixture().ask(.get, "/auth/sign-in.js")
        #expect(answer.headers[.contentType] == "text/javascript; charset=utf-8")
        #expect(answer.body.count <= 5_500, "\(answer.body.count) octets")
        #expect(
            answer.text.contains("const issuer = \"https://id.example\";")
                && !answer.text.contains("{{"))
        // A max_age of 0, which requires a new sign-in, is a value and must be sent.
        #expect(answer.text.contains("if (value || value === 0) url.searchParams.set"))
        // No sink that Trusted Types guard, and no other host.
        for word in [
            "innerHTML", "outerHTML", "insertAdjacent", "document.write", "eval(", "Function(",
            "import(", "http:",
        ] {
            #expect(!answer.text.contains(word), "\(word)")
        }
        #expect(answer.text.matches(of: /https:/).count == 1)
    }

    @Test func button_withoutSignInPage_is404() async throws {
        let fixture = try await ProviderFixture().api
        for path in ["/auth/button.svg", "/auth/sign-in.js"] {
            #expect(try await fixture.ask(.get, path).status == 404)
        }
    }
}
