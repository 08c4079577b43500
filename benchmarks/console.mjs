// What a person feels in the console, measured in a real browser. Called by console.py with one JSON argument;
// prints one JSON object of figures (milliseconds unless the name says otherwise).
import { chromium } from '../web/node_modules/playwright-core/index.mjs'

const { browser: executablePath, link, namespace, jobs, logJob, lastLine, rounds } = JSON.parse(process.argv[2])
const { origin, searchParams } = new URL(link)
const figures = {}
const add = (name, value) => (figures[name] ??= []).push(value)

const browser = await chromium.launch({ executablePath, args: ['--no-sandbox'] })

/** Processor time of the page's main thread, in ms: what a figure would be on a machine that nobody else uses. */
async function processor(page) {
  const session = (page.session ??= await page.context().newCDPSession(page))
  if (!page.timed) await session.send('Performance.enable', { timeDomain: 'threadTicks' })
  page.timed = true
  const { metrics } = await session.send('Performance.getMetrics')
  return metrics.find((each) => each.name === 'TaskDuration').value * 1000
}

async function signedIn() {
  const context = await browser.newContext({ viewport: { width: 1280, height: 860 }, locale: 'en-US' })
  const page = await context.newPage()
  await page.goto(`${origin}/?token=${searchParams.get('token')}`)
  await page.getByRole('heading', { name: 'Consoles' }).waitFor()
  return { context, page }
}

/** From a click to the first moment at which `done` holds in the page; polled at every frame. */
async function clickUntil(page, locator, done, argument) {
  await page.evaluate(
    ([source, given]) => {
      const holds = new Function(`return (${source})`)()
      window.clicked = new Promise((resolve) => {
        document.addEventListener(
          'click',
          () => {
            const begun = performance.now()
            const look = () => (holds(given) ? resolve(performance.now() - begun) : requestAnimationFrame(look))
            look()
          },
          { capture: true, once: true },
        )
      })
    },
    [done.toString(), argument],
  )
  await locator.click()
  return page.evaluate(() => window.clicked)
}

/** Frames a second while the wheel turns, and the longest frame. */
async function scroll(page, locator) {
  await locator.hover()
  await page.evaluate(() => {
    window.frames_ = []
    let last = performance.now()
    const frame = (now) => {
      window.frames_.push(now - last)
      last = now
      window.framing = requestAnimationFrame(frame)
    }
    requestAnimationFrame(frame)
  })
  const before = await processor(page)
  for (let i = 0; i < 60; i++) {
    await page.mouse.wheel(0, i < 30 ? 160 : -160)
    await page.waitForTimeout(16)
  }
  const used = (await processor(page)) - before
  const frames = await page.evaluate(() => {
    cancelAnimationFrame(window.framing)
    return window.frames_.slice(2)
  })
  return { fps: 1000 / (frames.reduce((a, b) => a + b, 0) / frames.length), longest: Math.max(...frames), cpu: used / frames.length }
}

const rowIsThere = () => document.querySelectorAll('tr.ant-table-row').length >= 10

for (let round = 0; round < rounds; round++) {
  const { context, page } = await signedIn()

  // Landing page, nothing cached.
  const cold = await browser.newContext({ locale: 'en-US', storageState: await context.storageState() })
  const landing = await cold.newPage()
  let begun = performance.now()
  await landing.goto(origin)
  await landing.getByRole('heading', { name: 'Consoles' }).waitFor()
  add('landing', performance.now() - begun)
  await cold.close()

  // 5,000 jobs: from the click in the menu to rows, from rows to a search that answers, to the last page.
  await page.goto(`${origin}/build/${namespace}/volumes`)
  const menu = page.getByRole('link', { name: 'Jobs', exact: true }).first()
  await menu.waitFor()
  let before = await processor(page)
  add('jobs_usable', await clickUntil(page, menu, rowIsThere))
  add('jobs_usable_cpu', (await processor(page)) - before)
  begun = performance.now()
  await page.getByText(`of ${jobs}`).waitFor({ timeout: 60_000 })
  add('jobs_all_after', performance.now() - begun)
  begun = performance.now()
  await page.getByPlaceholder('Type a name to search').fill(`job-${jobs - 7}`)
  await page.waitForFunction(() => document.querySelectorAll('tr.ant-table-row').length === 1)
  add('jobs_search', performance.now() - begun)
  await page.getByPlaceholder('Type a name to search').fill('')
  await page.locator('.ant-pagination-options .ant-select-selector').click()
  await page.getByTitle('100 / page').click()
  await page.waitForFunction(() => document.querySelectorAll('tr.ant-table-row').length === 100)
  const moved = await scroll(page, page.locator('tr.ant-table-row').first())
  add('jobs_scroll_fps', moved.fps)
  add('jobs_scroll_longest', moved.longest)
  add('jobs_scroll_cpu', moved.cpu)

  // A change of status in the cluster, from sending it to seeing it.
  await page.getByPlaceholder('Type a name to search').fill(`job-${round}-changes`)
  await page.waitForFunction(() => document.querySelectorAll('tr.ant-table-row').length === 1)
  add(
    'status_change',
    await page.evaluate(
      async ([space, name]) => {
        const { csrf } = await (await fetch('/console/session')).json()
        const path = `/k8s/apis/kubeflow.org/v1/namespaces/${space}/pytorchjobs/${name}/status`
        const now = new Date().toISOString().replace(/\.\d+/, '')
        const condition = { type: 'Failed', status: 'True', reason: 'PyTorchJobFailed', message: 'benchmark', lastUpdateTime: now, lastTransitionTime: now }
        const began = performance.now()
        const answer = fetch(path, {
          method: 'PATCH',
          headers: { 'Content-Type': 'application/merge-patch+json', 'X-Danlu-CSRF': csrf },
          body: JSON.stringify({ status: { conditions: [condition] } }),
        }).then((response) => {
          if (!response.ok) throw new Error(`PATCH ${path}: HTTP ${response.status}`)
        })
        const seen = new Promise((resolve) => {
          const look = () =>
            document.querySelector('tr.ant-table-row')?.textContent.includes('Error') ? resolve(performance.now() - began) : requestAnimationFrame(look)
          look()
        })
        await answer
        return seen
      },
      [namespace, `job-${round}-changes`],
    ),
  )

  // A log of a million lines: from the click on its tab to its last line, then the whole of it.
  await page.goto(`${origin}/build/${namespace}/jobs/pytorchjobs/${logJob}`)
  const tab = page.getByRole('tab', { name: 'Logs' })
  await tab.waitFor()
  await page.getByText('Master: 1').waitFor()
  before = await processor(page)
  add('log_opens', await clickUntil(page, tab, (text) => document.querySelector('.log-view')?.textContent.includes(text), lastLine))
  add('log_opens_cpu', (await processor(page)) - before)
  begun = performance.now()
  await page.getByText(/^1,000,\d+ lines/).waitFor({ timeout: 120_000 })
  add('log_whole_after', performance.now() - begun)
  const read = await scroll(page, page.locator('.log-view'))
  add('log_scroll_fps', read.fps)
  add('log_scroll_longest', read.longest)
  add('log_scroll_cpu', read.cpu)
  await context.close()
}

// One page is left open on the list, for what an open console costs the server.
const { page } = await signedIn()
await page.goto(`${origin}/build/${namespace}/jobs`)
await page.waitForFunction(rowIsThere)
await page.getByText(`of ${jobs}`).waitFor({ timeout: 60_000 })
process.stdout.write(`${JSON.stringify(figures)}\n`)
await new Promise((resolve) => process.stdin.on('data', resolve).on('end', resolve))
await browser.close()
