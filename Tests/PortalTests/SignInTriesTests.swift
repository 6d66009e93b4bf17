// Tries of codes: only wrong ones count, even if several come at once.

import Testing

@testable import HTTP
@testable import Portal

struct SignInTriesTests {
    /// Tries 600 codes at once from one network, with 20 places: the seconds that each must wait;
    /// nil if it was checked.
    private func waits(areWrong: Bool) async -> [Int?] {
        let tries = SignInTries(RateLimiter(perSecond: 0.1, burst: 20))
        let school = [ClientNetwork(name: "192.0.2.1", share: 1)]
        return await withTaskGroup(of: Int?.self) { group in
            for _ in 0..<600 {
                group.addTask {
                    if let seconds = await tries.begin(school, now: { 0 }) { return seconds }
                    await Task.yield()
                    tries.end(school, isWrong: areWrong)
                    return nil
                }
            }
            var waits: [Int?] = []
            for await wait in group { waits.append(wait) }
            return waits
        }
    }

    @Test func rightTries_moreAtOnceThanThereArePlaces_allSucceed() async {
        #expect(await waits(areWrong: false).allSatisfy { $0 == nil })
    }

    @Test func wrongTries_atOnce_areAsManyAsThereArePlaces() async {
        let waits = await waits(areWrong: true)
        #expect(waits.count { $0 == nil } == 20 && waits.count { $0 == 10 } == 580)
    }
}
