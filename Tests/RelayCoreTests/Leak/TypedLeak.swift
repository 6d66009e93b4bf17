// The result of the leak check for text that the user typed.

import LeakSearch

@testable import RelayCore

enum TypedLeak {
    /// - Parameter pieces: the body, divided in memory in any way.
    static func verdict(
        of names: ReplyNames, field: [UInt8]? = nil, _ pieces: [ArraySlice<UInt8>] = [],
        isMarkup: Bool = false
    ) -> LeakCheck.Verdict {
        func typed(_ count: Int) -> [StretchMap.Stretch] {
            [StretchMap.Stretch(end: count, kind: .typed)]
        }
        let count = pieces.reduce(0) { $0 + $1.count }
        let map = StretchMap(count, .text(StretchMap.Form(isMarkup: isMarkup), typed(count)))
        let fields =
            field.map { [LeakCheck.Field(name: "Subject", octets: $0, stretches: typed($0.count))] }
            ?? []
        return LeakCheck(LeakNames(names)).verdict(
            header: fields, body: pieces, map: map, work: WorkBudget(limit: .max))
    }

    static func isFound(_ text: [UInt8], of names: ReplyNames, isMarkup: Bool = false) -> Bool {
        verdict(of: names, [text[...]], isMarkup: isMarkup) != .clean
    }
}
