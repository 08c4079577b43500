/** Before each component test: an empty browser, and a server that has nothing. */
import { cleanup, configure } from '@testing-library/react'
import { connection } from '../kube/connection'
import { expect, afterEach, beforeEach, vi } from 'vitest'
import document_ from '../../index.html?raw'
import { forgetAll } from '../kube/store'
import { start } from './page'

// What could not be found is told with what a person would read, not with the markup.
const getElementError = (message: string | null): Error => new Error(`${message?.split('\n')[0]}\non a page that says: ${document.body.textContent}`)
configure({ asyncUtilTimeout: 10_000, getElementError })

const [, body = ''] = /<body>([\s\S]*)<script/.exec(document_) ?? []

// There is no screen: what asks for the size of something gets a screen's.
for (const [name, size] of [['clientHeight', 600], ['clientWidth', 1200], ['offsetHeight', 600], ['offsetWidth', 1200]] as const) {
  Object.defineProperty(HTMLElement.prototype, name, { configurable: true, get: () => size })
}

/**
 * Who looks for a role asks of every element whether something hides it. To work that out of the library's half a megabyte of
 * style sheets takes most of a test's time; it hides by an attribute, in the element's own style, or by a class named so.
 */
const hides = (element: Element): boolean => element.hasAttribute('hidden') || [...element.classList].some((name) => /^ant-.*-hidden$/.test(name))
const nothing = document.createElement('i')
nothing.style.display = 'none'
window.getComputedStyle = (element) => (hides(element) ? nothing.style : (element as HTMLElement).style)

beforeEach(() => {
  document.body.innerHTML = body
  localStorage.clear()
  sessionStorage.clear()
  start()
})

afterEach(() => {
  cleanup()
  forgetAll()
  expect(connection()).toBe('connected') // nothing that this test began goes on
  vi.useRealTimers()
  vi.unstubAllGlobals()
})
