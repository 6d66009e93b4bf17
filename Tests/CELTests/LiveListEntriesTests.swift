// Entries of live lists in their one form.

import CEL
import Testing

@Suite struct LiveListEntriesTests {
    @Test(arguments: [
        (LiveListKind.range, "::ffff:198.51.100.7", "198.51.100.7/32"),
        (.range, "::FFFF:C633:6400/120", "198.51.100.0/24"),
        (.range, "198.51.100.9/24", "198.51.100.0/24"), (.domain, "ＥＸＡＭＰＬＥ。jp", "example.jp"),
        (.domain, "MÜNCHEN.example.", "xn--mnchen-3ya.example"),
        (.domain, "xn--mnchen-3ya.EXAMPLE", "xn--mnchen-3ya.example"),
        (.personal, " Jane@Home.EXAMPLE ", "jane@home.example"),
        (.personal, "jane@münchen.example", "jane@xn--mnchen-3ya.example"),
        (.personal, "+44 (20) 7946-0958", "+442079460958"),
        (.personal, "0044-20-7946-0958", "+442079460958"),
        (.personal, "tel:+44.20.7946.0958", "+442079460958"),
        (.personal, "030 / 123 45 67", "0301234567"),
        (.text, "As It Is", "As It Is"),
    ])
    func normal_anyForm_isOne(kind: LiveListKind, text: String, normal: String) {
        #expect(
            LiveListEntries.normal(text, kind).map { $0.utf8.elementsEqual(normal.utf8) } == true)
    }

    @Test(arguments: [
        (LiveListKind.range, "198.51.100.7:443"), (.range, " 198.51.100.7"),
        (.range, "2001:db8::1%eth0"), (.range, "nonsense"),
        (.domain, "a b.example"), (.domain, "198.51.100.7"), (.domain, "１９８.51.100.7"),
        (.domain, "-x.example"), (.domain, ""),
        (.personal, "  "),
        (.text, ""),
        (.personal, "jane@home.example,farm"),
        (.personal, "farm;jane@home.example"), (.personal, "jane doe@home.example"),
    ])
    func normal_whatTheKindCannotHold_isNil(kind: LiveListKind, text: String) {
        #expect(LiveListEntries.normal(text, kind) == nil)
    }

    @Test func contains_domainInAnotherForm_isFound() {
        let list = LiveListEntries(.domain, ["xn--mnchen-3ya.example"])
        #expect(
            list.contains("Post.MÜNCHEN.example") && list.contains("ｐｏｓｔ.münchen.example")
                && !list.contains("munchen.example"))
    }

    @Test(arguments: [
        "198.51.100.0/33", "198.51.100.300", "198.51.100.0-198.51.100.9", "2001:db8::/129",
        "198.51.100.0/24 ", "1.2.3.4.5",
        "fe80::1/64/2",
    ])
    func isMistaken_almostARange_isTrue(text: String) { #expect(CELNetwork.isMistaken(text)) }

    @Test(arguments: [
        "198.51.100.0/24", "10.0", "1.2.3", "office", "2001:db8::/32", "a:b", "v1.2.3.4",
        "urn:x:y/z",
    ])
    func isMistaken_aRangeOrAnotherText_isFalse(text: String) {
        #expect(!CELNetwork.isMistaken(text))
    }
}
