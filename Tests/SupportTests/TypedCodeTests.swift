// Codes as people type and paste them.

import Support
import TestSupport
import Testing

@Suite(.blocking) struct TypedCodeTests {
    @Test(arguments: [
        "012345", "012 345", " 012-345\r\n", "０１２３４５", "٠١٢ ٣٤٥", "۰۱۲۳۴۵", "०१२३४५",
        "012\u{2013}345", "\u{200F}012345\u{200E}",
        "0\u{FE0F}1\u{FE0F}2345", "012\u{A0}345", "012\u{2212}345", "\u{1D7CE}12345",
    ])
    func digits_typedOrPasted_areTaken(text: String) {
        #expect(TypedCode.digits(text) == "012345")
    }

    @Test(arguments: [
        "", "12345", "1234567", "abcdef", "12345a", "１２３４５", "²³¹²³¹", "①②③④⑤⑥", "012345\u{301}",
        "+12345", "1e2345", "一二三四五六",
        String(repeating: " ", count: 251) + "012345",
    ])
    func digits_whatCannotBeACode_areNone(text: String) {
        #expect(TypedCode.digits(text) == nil)
    }

    @Test(
        arguments: [
            ("12", 12), (" 7 ", 7), ("١٠", 10), ("１０", 10), ("00012", 12), ("", nil), ("-1", nil),
            ("1.5", nil), ("1e3", nil),
            ("²", nil), ("99999999999999999999", nil), ("+5", nil),
        ] as [(String, Int?)])
    func number_inAnyScript_isRead(_ text: String, _ number: Int?) {
        #expect(TypedCode.number(text) == number)
    }
}
