// The browser of a session.

import TestSupport
import Testing

@testable import SignIn

@Suite(.blocking) struct BrowserNameTests {
    @Test(
        arguments: [
            (
                "Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0",
                "Firefox/Linux"
            ),
            (
                "Mozilla/5.0 (iPhone; CPU iPhone OS 18_1 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.1 Mobile/15E148 Safari/604.1",
                "Safari/iPhone"
            ),
            (
                "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/130.0.0.0 Safari/537.36 Edg/130.0.0.0",
                "Edge/Windows"
            ),
            (
                "Mozilla/5.0 (Linux; Android 14; SM-S921B) AppleWebKit/537.36 (KHTML, like Gecko) SamsungBrowser/26.0 Chrome/122.0.0.0 Mobile Safari/537.36",
                "Samsung Internet/Android"
            ),
            (
                "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/130.0.0.0 Safari/537.36",
                "Chrome/macOS"
            ),
            (
                "Mozilla/5.0 (iPhone; CPU iPhone OS 17_5 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) CriOS/130.0 Mobile/15E148 Safari/604.1",
                "Chrome/iPhone"
            ),
            ("curl/8.5.0", nil), ("", nil), (nil, nil),
            (String(repeating: "Firefox/Linux", count: 100), nil),
        ] as [(String?, String?)])
    func userAgent_ofBrowsers_isReadAsFamilyAndSystem(_ field: String?, _ expected: String?) {
        let name = BrowserName(userAgent: field)
        #expect(name?.stored == expected)
        #expect(name.map(\.stored).flatMap(BrowserName.init(stored:)) == name)
    }
}
