// Answers in each response mode, octet by octet.

import Foundation
import MailCrypto
import Support
import TestSupport
import Testing

@testable import SignIn

@Suite(.blocking) struct AuthorizationResponseTests {
    private static let hostile = "\"'><script>alert(1)</script>&state=x\u{2028}ü"

    private func target(
        _ mode: AuthorizationResponseMode, _ uri: String = AuthorizationFixture.redirect,
        state: String? = "a b&c"
    ) -> AuthorizationResponseTarget {
        AuthorizationResponseTarget(
            redirectURI: uri, mode: mode, state: state, issuer: AuthorizationFixture.issuer)
    }

    private func redirect(_ response: AuthorizationResponse) throws -> String {
        guard case .redirect(let uri) = response.rendered() else {
            throw AuthorizationFixture.Unexpected(verdict: "a page")
        }
        return uri
    }

    private func page(_ response: AuthorizationResponse) throws -> RenderedPage {
        guard case .page(let page) = response.rendered() else {
            throw AuthorizationFixture.Unexpected(verdict: "a redirect")
        }
        return page
    }

    /// Each page that passes a response on, in another language, with words that contain markup.
    @Test(arguments: [AuthorizationResponseMode.formPost, .webMessage, .query])
    func page_inAnotherLanguage_hasItsWordsAndDirection(_ mode: AuthorizationResponseMode) throws {
        let words = PassingWords(language: "ar", isRightToLeft: true) { "\"<b>\($0)" }
        let long = target(mode, state: String(repeating: "x", count: 3_000))
        guard
            case .page(let page) = AuthorizationResponse(
                long, code: "pc_1", identityToken: nil, user: nil
            ).rendered(words)
        else { throw AuthorizationFixture.Unexpected(verdict: "a redirect") }
        #expect(page.html.contains("<html lang=\"ar\" dir=\"rtl\""))
        #expect(page.html.contains("<title>&quot;&lt;b&gt;One moment</title>"))
        #expect(!page.html.contains("<b>") && !page.html.contains("{{"))
        let shown = mode == .webMessage ? "You can close this window." : "Continue"
        #expect(page.html.contains("&quot;&lt;b&gt;\(shown)<"))
    }

    @Test func queryMode_success_isBuiltOctetByOctet() throws {
        let issuer = "iss=https%3A%2F%2Fid.example"
        #expect(
            try redirect(
                AuthorizationResponse(target(.query), code: "pc_1", identityToken: nil, user: nil))
                == "https://juice.example/signed-in?code=pc_1&state=a%20b%26c&\(issuer)")
        let more = target(.query, "https://juice.example/in?app=1", state: nil)
        #expect(
            try redirect(AuthorizationResponse(more, code: "pc_1", identityToken: nil, user: nil))
                == "https://juice.example/in?app=1&code=pc_1&\(issuer)")
        for uri in ["https://juice.example/in?", "https://juice.example/in?a=1&"] {
            #expect(
                try redirect(
                    AuthorizationResponse(
                        target(.query, uri, state: nil), code: "pc_1", identityToken: nil, user: nil
                    ))
                    == "\(uri)code=pc_1&\(issuer)")
        }
    }

    @Test func fragmentMode_success_holdsIDToken() throws {
        let response = AuthorizationResponse(
            target(.fragment), code: "pc_1", identityToken: "e30.e30.AA", user: nil)
        #expect(
            try redirect(response)
                == "https://juice.example/signed-in#code=pc_1&id_token=e30.e30.AA&state=a%20b%26c&iss=https%3A%2F%2Fid.example"
        )
    }

    @Test func response_everyMode_namesIssuerAndState() throws {
        for mode in AuthorizationResponseMode.allCases {
            let success = AuthorizationResponse(
                target(mode), code: "pc_1", identityToken: nil, user: nil)
            let failure = AuthorizationResponse(
                target(mode), AuthorizationError(.accessDenied, "the user cancelled"))
            for response in [success, failure] {
                #expect(
                    response.parameters.filter { $0.name == "iss" }.map(\.value) == [
                        AuthorizationFixture.issuer
                    ])
                #expect(response.parameters.filter { $0.name == "state" }.map(\.value) == ["a b&c"])
            }
            #expect(!failure.parameters.contains { $0.name == "code" })
        }
    }

    @Test func response_stateWithLineBreaks_isNotSplit() throws {
        for mode in [AuthorizationResponseMode.query, .fragment] {
            let response = AuthorizationResponse(
                target(mode, state: "x\r\nSet-Cookie: a=b\r\n\r\n<html>" + Self.hostile),
                AuthorizationError(.invalidRequest, "no"))
            let uri = try redirect(response)
            #expect(
                uri.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F && ![0x22, 0x3C, 0x3E].contains($0) })
            #expect(uri.contains("state=x%0D%0ASet-Cookie"))
        }
    }

    @Test func formPostMode_hostileState_isEscaped() throws {
        let response = AuthorizationResponse(
            target(.formPost, "https://juice.example/in?a=1&b='2'", state: Self.hostile),
            code: "pc_1", identityToken: nil,
            user: nil)
        let page = try page(response)
        #expect(
            page.html.contains(
                #"<form method="post" action="https://juice.example/in?a=1&amp;b=&#39;2&#39;">"#))
        #expect(page.html.contains(#"<input type="hidden" name="code" value="pc_1">"#))
        #expect(
            page.html.contains(
                "name=\"state\" value=\"&quot;&#39;&gt;&lt;script&gt;alert(1)&lt;/script&gt;&amp;state=x\u{2028}ü\">"
            ))
        #expect(page.html.components(separatedBy: "<script").count == 2)
    }

    @Test func page_formPostOrWebMessage_runsOwnScriptOnly() throws {
        for mode in [AuthorizationResponseMode.formPost, .webMessage] {
            let page = try page(
                AuthorizationResponse(
                    target(mode, state: Self.hostile), code: "a", identityToken: nil, user: nil))
            let start = try #require(page.html.range(of: "<script>"))
            let end = try #require(page.html.range(of: "</script>"))
            let script = String(page.html[start.upperBound..<end.lowerBound])
            let hash = Data(SHA256.hash(Array(script.utf8))).base64EncodedString()
            let forms = mode == .formPost ? "https:" : "'none'"
            #expect(
                page.policy
                    == "default-src 'none'; script-src 'sha256-\(hash)'; base-uri 'none'; frame-ancestors 'none'; form-action \(forms)"
            )
            #expect(!script.contains("{{") && !page.html.contains("{{"))
        }
    }

    @Test func webMessageMode_redirectURI_decidesOrigin() throws {
        for (uri, origin) in [
            ("https://juice.example/signed-in", "https://juice.example"),
            ("https://Juice.example:443/", "https://juice.example"),
            ("https://juice.example:8443", "https://juice.example:8443"),
            ("http://127.0.0.1:8080/in", "http://127.0.0.1:8080"),
            ("http://[::1]:80?x", "http://[::1]"),
        ] {
            let page = try page(
                AuthorizationResponse(
                    target(.webMessage, uri), code: "pc_1", identityToken: nil, user: nil))
            #expect(page.html.contains("data-origin=\"\(origin)\""))
            #expect(!page.html.contains("\"*\""))
        }
        #expect(WebOrigin("com.example.juice:/signed-in") == nil)
        #expect(WebOrigin("https://jane@juice.example/") == nil)
        #expect(WebOrigin("https:///path") == nil)
    }

    @Test func webMessageMode_parameters_areJSON() throws {
        let page = try page(
            AuthorizationResponse(
                target(.webMessage, state: Self.hostile), code: "pc_1", identityToken: "e30",
                user: #"{"name":"Jane"}"#))
        let start = try #require(page.html.range(of: "data-response=\"")?.upperBound)
        let end = try #require(
            page.html.range(of: "\">", range: start..<page.html.endIndex)?.lowerBound)
        let text = [("&quot;", "\""), ("&#39;", "'"), ("&lt;", "<"), ("&gt;", ">"), ("&amp;", "&")]
            .reduce(
                String(page.html[start..<end])
            ) { $0.replacingOccurrences(of: $1.0, with: $1.1) }
        let object = try StrictJSON.parseObject(Array(text.utf8), limit: 4096)
        #expect(object["state"]?.string == Self.hostile)
        #expect(object["code"]?.string == "pc_1")
        #expect(object["user"]?.string == #"{"name":"Jane"}"#)
    }
}
