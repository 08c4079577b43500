import { createRoot } from 'react-dom/client'
import App from './App'
import { readAddress } from './frame/arriving'
import './styles.css'

// After an update the server no longer has the parts of the pages that this tab knows: it takes the new ones, once a minute at most.
window.addEventListener('vite:preloadError', () => {
  const last = Number(sessionStorage.getItem('danlu.reloaded') ?? 0)
  if (Date.now() - last < 60_000) return
  sessionStorage.setItem('danlu.reloaded', String(Date.now()))
  location.reload()
})

readAddress()
createRoot(document.getElementById('root')!).render(<App />)
